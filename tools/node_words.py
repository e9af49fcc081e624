"""What the reference says about each field, beside what the models know themselves."""

from __future__ import annotations

from typing import Final, NamedTuple


class Word(NamedTuple):
    """One field. ``kind`` is its type in words where the model says anything goes; empty: as the model says."""

    meaning: str
    kind: str = ""


VALUE: Final = "any value or expression"
CONDITION: Final = "condition or group"
FLOW: Final = "flow"
NUMBER: Final = "number or expression"
COUNT: Final = "integer or expression"
TARGET: Final = "id of a node"
TEXT: Final = "text or expression"
PROPERTY: Final = "type"
DURATION: Final = "milliseconds, ISO 8601 or expression"

COMMON: Final = {
    "id": Word("Name of the node, unique in its flow; results are read as `$NODE.id`."),
    "name": Word("A name for people."),
    "desc": Word("A description for people."),
    "output": Word("What the node gives; read by `assignment` and `end` only.", VALUE),
    "next": Word("The node that follows. Branching nodes and `end` have fields of their own.", TARGET),
    "timeout": Word("The node is ended after this time, at most 24 hours; then `timeoutHandler` decides.", DURATION),
    "source_line": Word("Kept for editors."),
    "on_doubt": Word("`rerun` or `block`: a cut call whose repetition would be another request."),
    "timeout_handler": Word("What follows a timeout.", "[handler](#handlers)"),
    "error_handler": Word("What follows an error.", "[handler](#handlers) with retry"),
}
_BODY = Word("The flow of one round.", FLOW)
_COLLECTION = {
    "child_flow": _BODY,
    "collection": Word("The items: a list, JSON text of one, or null for none.", VALUE),
    "item_type": Word("Accepted, without effect.", PROPERTY),
    "input": Word("Accepted, without effect: a round gets `$INPUT.item` and `$INPUT.index`.", VALUE),
}
_TIMEOUT = Word("Gives up after so many seconds.", NUMBER)
_AT_ONCE = Word("How many run at once; null: all.", COUNT)
_ON_ERROR = Word('`fail`, or `collect`: `{"error": {…}}` in the place of what failed.')

_SERVICE = {
    "event_type": Word("The type of the event that answers."),
    "event_filter": Word("Dotted paths in the data of the event, and the values they must have."),
    "subscription_timeout": Word("Gives up after so many seconds, when that is sooner.", NUMBER),
}

FIELDS: Final[dict[str, dict[str, Word]]] = {
    "approval": {
        "approval_title": Word("What is asked.", TEXT),
        "approval_content": Word("What voters should know.", TEXT),
        "approvers": Word("Who may vote: names, or expressions for names or lists.", VALUE),
        "approval_type": Word("Kept; `auto` has no effect."),
        "approval_strategy": Word("`any`, `all` or `majority`."),
        "auto_escalation": Word("Kept, without effect."),
        "escalation_timeout_hours": Word("Kept, without effect.", NUMBER),
        "escalation_approvers": Word("Kept, without effect."),
        "form_fields": Word("Fields of a form that a vote may fill in.", VALUE),
        "allow_comments": Word("Said to whoever shows the task."),
        "require_comments": Word("A vote without a comment is refused."),
        "notification_config": Word("Kept, without effect."),
        "event_type": Word("Kept in the result."),
        "event_filter": Word("Kept in the result."),
        "subscription_timeout": _TIMEOUT,
    },
    "assignment": {
        "output": Word("The value.", VALUE),
        "output_type": Word("The value must fit it; defaults are filled in.", PROPERTY),
        "upstream_output": Word("Values by the node that ran before; takes the place of `output`."),
    },
    "calculate": {
        "call": Word("The call: `function_name` and `params`, or JSON of it.", "object"),
    },
    "case": {
        "target": Word("The value that is compared.", VALUE),
        "cases": Word("See below; equality is that of JSON."),
        "default": Word("Where to go when no case is equal.", TARGET),
    },
    "child": {
        "input": Word("`$INPUT` of the sub-flow; absent: that of the flow around it.", VALUE),
        "child_flow": Word("The sub-flow.", FLOW),
    },
    "code": {
        "language": Word("`python`, or one that the program has registered."),
        "code": Word("The script; it defines `run`. Nothing in it is evaluated by the flow."),
        "input": Word("The argument of `run`.", VALUE),
        "sandbox_backend": Word("`subprocess` or `restricted`; absent: the first that the settings allow."),
    },
    "delay": {
        "delay_seconds": Word("How long, in units of `delayUnit`.", NUMBER),
        "delay_unit": Word("`seconds`, `minutes`, `hours` or `days`."),
        "event_type": Word("Kept in the result."),
        "event_filter": Word("Kept in the result."),
        "subscription_timeout": Word("Accepted, without effect: a delay is its own timeout.", NUMBER),
    },
    "end": {
        "output": Word("The output of the flow, checked against its `outputType`.", VALUE),
        "result_type": Word("`success`, `nop` (the output is null) or `error`."),
        "error": Word("`{code, message}` of a business error; both are evaluated.", "object"),
    },
    "event": {
        "event_type": Word("The type that is waited for.", TEXT),
        "event_filter": Word("Dotted paths in the data, and the values they must have.", "object or expression"),
        "subscription_timeout": _TIMEOUT,
        "correlation": Word("The key that the event must carry.", TEXT),
        "reuse": Word("Takes an event that answered another wait of the execution before."),
    },
    "filter": _COLLECTION,
    "find": _COLLECTION,
    "http": {
        "url": Word("Where to: `https://HOST/PATH`; user and password in it become `Authorization`.", TEXT),
        "method": Word("`GET`, `HEAD`, `POST`, `PUT`, `DELETE`, `PATCH`, `OPTIONS` or `TRACE`, in any case.", TEXT),
        "query": Word(
            "Added to the query of the URL: names and values, or text as it is.", "object, text or expression"
        ),
        "headers": Word(
            "Names and values; what frames a message (`Content-Length` and the like) is left out.", "object"
        ),
        "body": Word("What is sent; null: nothing.", VALUE),
        "content_type": Word("Of the body; a `Content-Type` among the headers wins.", TEXT),
        "request_timeout": Word(
            "For everything from connecting to the last byte, redirects too.",
            "seconds up to 600, ISO 8601 or expression",
        ),
        "max_redirects": Word("0 to 20; 0 makes a redirect the result.", COUNT),
        "allowed_hosts": Word(
            "Only these, by name or address; an empty list allows none.", "list of hosts or expression"
        ),
        "denied_hosts": Word("Not these, whatever else is allowed.", "list of hosts or expression"),
        "block_private_networks": Word(
            "Only public addresses; `PLAITA_HTTP_BLOCK_PRIVATE` sets it for every node.", "true, false or expression"
        ),
        "fail_on": Word(
            "Statuses that are errors: `404`, `5xx`, `400-499`, or a list of these.", "status, list or expression"
        ),
        "idempotency_key": Word(
            "Sends an `Idempotency-Key` with methods that change something.", "true, false or expression"
        ),
        "addressing": Word("Accepted, without effect."),
        "delegate": Word("Accepted, without effect."),
        "output": Word("Becomes `data`, and the body `body`.", VALUE),
    },
    "http_callback": {
        "callback_path": Word("Where the request goes; absent: `/callback/FLOW/NODE/EXECUTION`.", TEXT),
        "callback_method": Word("`GET`, `POST`, `PUT` or `DELETE`.", TEXT),
        "callback_timeout_minutes": Word("Gives up after so many minutes.", COUNT),
        "require_auth": Word("Must the caller prove anything?", "true, false or expression"),
        "auth_type": Word("`token`, `basic` or `signature`.", TEXT),
        "auth_token": Word("`env:NAME` or `file:PATH` of what the caller must know; absent: derived.", TEXT),
        "validate_headers": Word("Headers that the request must have.", "object"),
        "validate_params": Word("Parameters that the request must have.", "object"),
        "success_response": Word("The answer to a request that is accepted.", "object"),
        "error_response": Word("The answer to any other.", "object"),
        **_SERVICE,
    },
    "if": {
        "condition": Word("What is asked.", CONDITION),
        "next": Word("Where to go when it holds.", TARGET),
        "else_next": Word("Where to go otherwise.", TARGET),
    },
    "kafka_queue": {
        "bootstrap_servers": Word("Servers: a list, or text with commas.", VALUE),
        "topic": Word("The topic.", TEXT),
        "group_id": Word("The group of the consumer.", TEXT),
        "security_protocol": Word("`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`.", TEXT),
        "sasl_mechanism": Word("`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`.", TEXT),
        "sasl_username": Word("The user.", TEXT),
        "sasl_password": Word("`env:NAME` or `file:PATH` of the password.", TEXT),
        "partition": Word("Only this one.", COUNT),
        "auto_offset_reset": Word("`earliest` or `latest`.", TEXT),
        "enable_auto_commit": Word("Said to the consumer.", "true, false or expression"),
        "max_poll_records": Word("Said to the consumer.", COUNT),
        "message_format": Word("`json` or `text`.", TEXT),
        "timeout_ms": Word("Gives up after so many milliseconds; 0: never.", COUNT),
        **_SERVICE,
    },
    "loop": {**_COLLECTION, "condition": Word("Asked after each round; no further one when it fails.", CONDITION)},
    "map": {
        **_COLLECTION,
        "concurrent": Word("Several items at once."),
        "max_concurrent": _AT_ONCE,
        "on_branch_error": _ON_ERROR,
    },
    "mock": {"value": Word("The result, as it is written.", "any value")},
    "parallel": {
        "branches": Word("See below."),
        "is_conditional": Word("Branches whose condition does not hold are left out."),
        "mode": Word("`thread`, `process` or `coroutine`; without effect."),
        "join_branches": Word("Names of the branches to wait for; absent or empty: all."),
        "on_branch_error": _ON_ERROR,
        "max_concurrent": _AT_ONCE,
    },
    "redis": {
        "target": Word("`redis://USER:PASSWORD@HOST:PORT/DB`, or `rediss://` for TLS.", TEXT),
        "command": Word("The name of the command.", TEXT),
        "arguments": Word("A list, or text that is split at white space.", VALUE),
    },
    "redis_queue": {
        "queue_name": Word("The list, stream or channel.", TEXT),
        "redis_host": Word("The server.", TEXT),
        "redis_port": Word("Its port.", COUNT),
        "redis_db": Word("Its database.", COUNT),
        "redis_password": Word("`env:NAME` or `file:PATH` of the password.", TEXT),
        "queue_type": Word("`list`, `stream` or `pubsub`.", TEXT),
        "timeout_seconds": Word("Gives up after so many seconds; 0: never.", COUNT),
        "batch_size": Word("Said to the service.", COUNT),
        "message_format": Word("`json`, `text` or `raw`.", TEXT),
        **_SERVICE,
    },
    "reduce": {**_COLLECTION, "initial": Word("Where folding begins; absent or null: the first item.", VALUE)},
    "reference": {
        "flow_id": Word("The flow to run."),
        "flow_version": Word("Its version; absent: the latest."),
        "input": Word("`$INPUT` of that flow; absent: `{}`.", VALUE),
        "child_flow": Word("The flow itself, for programs that have it at hand.", FLOW),
    },
    "start": {},
    "switch": {
        "branches": Word("See below."),
        "output_type": Word("Accepted, without effect.", PROPERTY),
    },
    "while": {
        "child_flow": _BODY,
        "condition": Word("Asked before each round; without one there is one round.", CONDITION),
        "max_iterations": Word("The most rounds; then the node ends without an error.", COUNT),
    },
}

_NAMED = {
    "label": Word("For editors."),
    "desc": Word("For people."),
}
PARTS: Final[dict[str, dict[str, Word]]] = {
    "switch": {
        "name": Word("Name of the branch, and its target when there is no `next`."),
        "next": Word("Where to go.", TARGET),
        "condition": Word("Needed unless the branch is the default.", CONDITION),
        "priority": Word("Higher ones are asked first; equal ones in order."),
        "is_default": Word("Taken when no condition holds."),
        **_NAMED,
    },
    "case": {
        "id": Word("Where to go: the id of a node."),
        "value": Word("Compared with `target`.", VALUE),
        "name": Word("A name for people."),
    },
    "parallel": {
        "name": Word("Key of its result."),
        "flow": Word("The sub-flow.", FLOW),
        "input": Word("`$INPUT` of the sub-flow; absent: that of the flow around it.", VALUE),
        "condition": Word("Counts only with `isConditional`.", CONDITION),
        "next": Word("Accepted, without effect.", TARGET),
        "priority": Word("Accepted, without effect."),
        "is_default": Word("Accepted, without effect."),
        **_NAMED,
    },
}

HANDLER: Final = {
    "strategy": Word("`abort` fails the flow, `continue` goes on with null, `continue-with` with `defaultValue`."),
    "default_value": Word("The result in place of the failed one.", VALUE),
    "error_code": Word("The code an abort fails with."),
    "error_message": Word("The message an abort fails with."),
    "retry_times": Word("More attempts, at most 10, with the delays of `retry`."),
    "retry": Word("Attempts and their delays; takes the place of `retryTimes`.", "see below"),
}
RETRY: Final = {
    "attempts": Word("Attempts after the first one, 0 to 10."),
    "base": Word("The first delay.", "milliseconds or ISO 8601"),
    "factor": Word("Each delay is that much longer, 1 to 100."),
    "cap": Word("The longest delay.", "milliseconds or ISO 8601"),
    "jitter": Word("The share of a delay that is random, 0 to 1."),
}
FLOW_FIELDS: Final = {
    "flow_id": Word("Its name in the store; the name of the file when absent."),
    "version": Word("For people.", "text or number"),
    "runtime": Word("`python`; nothing else is available."),
    "input_type": Word("The input must fit it; defaults are filled in.", PROPERTY),
    "output_type": Word("The output must fit it.", PROPERTY),
    "nodes": Word("The nodes; the flow begins at its `start`.", "list of nodes"),
    "author": Word("For people."),
    "desc": Word("For people."),
    "metadata": Word("Free, apart from `imports`: modules and `.py` files beside the flow with custom nodes."),
    "timeout": Word("Wall-clock time from the start on, waits included.", "milliseconds or ISO 8601"),
    "global_context": Word("What `$GLOBAL` gives."),
    "expose_env": Word("Names of environment variables that `$ENV` may give."),
}
OPERATOR_WORDS: Final = {
    "eq": "Equal, by the rules of JSON: `1` and `1.0` are, `1` and `true` are not.",
    "ne": "Not equal.",
    "gt": "Greater: two numbers or two texts.",
    "gte": "Greater or equal.",
    "lt": "Less.",
    "lte": "Less or equal.",
    "in": "`field` is an element, a part or a key of `value`.",
    "notIn": "It is none.",
    "contains": "`value` is an element, a part or a key of `field`.",
    "notContains": "It is none.",
    "truthy": "`field` is neither null, false, 0 nor empty; needs no `value`.",
    "falsy": "It is; needs no `value`.",
}
TYPE_WORDS: Final = {
    "string": "Text, the empty one too.",
    "integer": "A number without a point; `1.0` is none.",
    "float": "A number.",
    "number": "A number.",
    "decimal": "A number.",
    "boolean": "`true` or `false`; never a number.",
    "array": "A list; `items` is the type of each element, or a list of types for a list of that length.",
    "object": "An object; `properties` declares keys, others may be there too.",
    "map": "As `object`.",
    "date": "Text of an ISO 8601 date.",
    "datetime": "Text of an ISO 8601 date and time.",
    "timestamp": "A number, or text as for `datetime`.",
    "null": "Nothing but null.",
    "optional": "Any value.",
    "any": "Any value.",
    "type": "Text: the name of a type.",
}
