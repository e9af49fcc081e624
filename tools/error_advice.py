"""What a person does about each error; the part of its page that the class cannot tell."""

from typing import Final

_LOOK: Final = "`plaita inspect ID --history` shows what happened; `plaita retry ID` goes on at the node that failed."

ADVICE: Final[dict[str, str]] = {
    "PLT-E01": (
        "Each issue names a line, a JSON path and mostly a remedy. Correct them and run `plaita validate FLOW`, which "
        "lists all of them at once. An old execution whose definition no longer loads stays as it is until the "
        "missing node type or import is there."
    ),
    "PLT-E02": (
        "The path leads to the value that is not JSON or does not fit its type: `$.items[3].price` is the `price` of "
        "the fourth item. Nothing was started or changed. Send the value again in the shape that the message asks for."
    ),
    "PLT-E03": (
        "The flow came to a node that waits (an approval, a timer, an event), and a plain run cannot wait. Run it as a "
        "durable execution: `plaita run FLOW`, or `Runtime.start` in Python. `plaita validate FLOW` tells beforehand "
        "whether a flow may wait."
    ),
    "PLT-E04": (
        "Look at the store that the message names: another working directory or another `PLAITA_STORE` is another "
        "store. `plaita ps` and `plaita flows` list what is there."
    ),
    "PLT-E05": (
        "One id or key was used for two different requests. Use a new id, or send exactly what was sent first: a "
        "repetition of the same request is answered, never refused."
    ),
    "PLT-E06": (
        "Nothing was changed by the call that failed, or it was stored whole. Remove the cause that the message names "
        "and send the same request again. `plaita doctor` checks store, permissions, space and versions."
    ),
    "PLT-E07": (
        "Somebody else answered, the deadline passed, or the execution ended. `plaita inspect ID` shows the waits that "
        "are open now and who answered the others."
    ),
    "PLT-E08": (
        "The message names what is missing here: a node type or an import, another store, or a choice that this "
        "version does not offer. Nothing was started."
    ),
    "PLT-E09": (
        "The message names what was refused and the rule: `blockPrivateNetworks`, `allowedHosts`, `deniedHosts` of an "
        "`http` node, or a setting of the process. Change the rule if it is wrong; the node is never retried."
    ),
    "PLT-E10": (
        "The name is documented and comes with a later release; the message says what to use until then. It is an "
        "`ImportError` as well, so a program may try it and go on without. [Differences](../differences.md) lists all "
        "of them."
    ),
    "PLT-E11": (
        "The message shows the expression, the operator or function, and the types it got. In a flow it is the failure "
        "of the node that holds the expression, and it is never retried: give the value another type, or guard it with "
        "`a if c else b`."
    ),
    "PLT-E12": (
        "The column counts from 1 inside the expression. In a flow all of them are found at load: `plaita validate "
        "FLOW` lists them with their places."
    ),
    "PLT-E13": (
        'With `PLAITA_TENANCY=multi` a write says for whom it is: call `set_current_tenant("acme")` of '
        "`plaita.server.tenant_context` before, or put `tenant_id` into the state. In an installation for one tenant "
        "leave the variable alone."
    ),
    "PLT-E14": (
        "The log of the processes says why: mostly a module that `--import` names and that fails in a new process, or "
        "a port of `--metrics-port` that is taken. Nothing was held, so nothing was lost; start the worker again."
    ),
    "PLT-E20": f"Read `code`, `kind`, `message` and `path`: the ids of the nodes from the root to the failure. {_LOOK}",
    "PLT-E21": (
        "Compare the id in the message with the ids of the flow; they are case-sensitive. It was computed, mostly by a "
        "`defaultValue` of an error handler or by a custom node that branches."
    ),
    "PLT-E22": "Add a node of type `start`. `plaita validate FLOW` finds this before anything runs.",
    "PLT-E23": (
        "The message is the node's own. Where it may pass by itself, declare a `retry` in the node's `errorHandler`; "
        f"where the flow can do without the node, a `defaultValue` or a branch. {_LOOK}"
    ),
    "PLT-E24": (
        "The call was ended; whether its effect happened is for the other side to tell. Raise the node's `timeout`, or "
        f"declare a `timeoutHandler` with a default, a branch or a retry. {_LOOK}"
    ),
    "PLT-E25": (
        "The `timeout` of a sub-flow counts from its start, waits included. Raise it, bound the part that is slow with "
        "a timeout of its own, or catch it with an `errorHandler` of the node that holds the sub-flow."
    ),
    "PLT-E26": (
        "The `timeout` of a flow counts from its start, waits included. A flow without one has the active time of "
        "`PLAITA_EXECUTION_DEADLINE_SECONDS`, waits excluded. Raise the one that was reached; a loop without an end is "
        "the usual cause of the second."
    ),
    "PLT-E27": f"The message names the node: add a default branch to it, or a `next`. {_LOOK}",
    "PLT-E28": (
        "Somebody asked for it; `plaita inspect ID --history` says who and when. A cancelled execution does not go on."
    ),
    "PLT-E29": (
        "The author of the flow ends it this way: `code` and `message` are theirs, and the flow documents them. "
        "Nothing is broken."
    ),
    "PLT-E30": (
        "`run_distributed` was asked for a step that does not exist: the execution has ended, the resume type is "
        "unknown, or the saved context is of another flow. Start a new execution, or pass the context of the last step."
    ),
    "PLT-E31": (
        "An `event` or `timeout` must carry the `subscription_id` of the pending node, and an execution that waits "
        "takes no `continue`. Correct the answer and call again with the same context."
    ),
    "PLT-E32": "It cannot occur: state holds JSON only, and what is not JSON is refused where it arises.",
    "PLT-E40": (
        "Publish a type with its data, an `Event`, or an object with `event_type`; its data must be JSON. A handler is "
        "a function or a coroutine function of one event."
    ),
    "PLT-E41": "A bus in memory keeps its latest 10,000 events and ends with its process. Check the id.",
    "PLT-E42": (
        "A bus in memory does not replay: begin to wait before the event is published, or give it more time. A flow "
        "that must not miss one waits with an `event` node in a durable execution."
    ),
    "PLT-E43": "Unregister subscriptions nobody waits for any more; a flow does so itself when its wait is answered.",
}
