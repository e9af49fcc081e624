"""Single statements of the documentation that no other test is about."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, ClassVar

import pytest

from plaita import NodeException, parse, parse_and_run
from plaita.base.errors import ErrorResultException, FlowLoadError, NodeExecutionError, NodeTimeoutError
from plaita.core.callback import FlowCallback
from plaita.core.executor import FlowExecution
from plaita.core.flow import Flow
from plaita.node.basic import Node
from plaita.runtime import Runtime
from tests.support.flows import chain, flow_of, outside

TRUE = {"field": 1, "operator": "eq", "value": 1}
FALSE = {"field": 1, "operator": "eq", "value": 2}


def ended(error: Any, **header: Any) -> ErrorResultException:
    nodes = [
        {"id": "s", "type": "start", "next": "e"},
        {"id": "e", "type": "end", "resultType": "error", "error": error},
    ]
    with pytest.raises(ErrorResultException) as caught:
        Flow.model_validate({"nodes": nodes, **header}).run(bad={"code": 7, "message": "as computed"}, n=2)
    return caught.value


@pytest.mark.parametrize(
    ("code", "found"),
    [(4001, 4001), ("X1", "X1"), (3.0, 3), (3.5, "3.5"), (True, "true"), (None, -500), ([1], "[1]"), ("$INPUT.n", 2)],
)
def test_an_end_takes_any_code(code: Any, found: Any) -> None:
    assert ended({"code": code, "message": "no"}).code == found


def test_an_end_without_a_code_has_the_code_of_a_failed_flow() -> None:
    assert (ended({"message": "no"}).code, ended({"code": 1}).message) == (-500, "")


def test_the_message_of_an_end_is_rendered_as_in_a_template() -> None:
    assert ended({"code": 1, "message": {"ok": True, "n": None}}).message == '{"ok": true, "n": null}'


def test_the_error_of_an_end_may_be_computed_as_a_whole() -> None:
    assert (ended("$INPUT.bad").code, ended("$INPUT.bad").message) == (7, "as computed")


def test_a_computed_error_that_is_no_object_fails_the_node() -> None:
    nodes = [{"id": "s", "type": "start", "next": "e"}, {"id": "e", "type": "end", "resultType": "error"}]
    nodes[1]["error"] = "$INPUT.n"
    with pytest.raises(NodeExecutionError, match="an object with code and message is needed, not integer"):
        Flow.model_validate({"nodes": nodes}).run(n=2)


def test_the_next_of_an_end_is_not_followed_and_may_name_nothing() -> None:
    flow = chain(output=1)
    flow["nodes"][-1]["next"] = "nowhere"
    assert Flow.model_validate(flow).run() == 1


def switched(*branches: dict[str, Any]) -> Flow:
    nodes = [
        {"id": "s", "type": "start", "next": "w"},
        {"id": "w", "type": "switch", "branches": list(branches)},
        *({"id": node_id, "type": "end", "output": node_id} for node_id in "abc"),
    ]
    return Flow.model_validate({"nodes": nodes})


@pytest.mark.parametrize(
    ("condition", "others", "taken"), [(TRUE, TRUE, "a"), (FALSE, TRUE, "b"), (FALSE, FALSE, "a"), (None, TRUE, "b")]
)
def test_a_default_branch_with_a_condition_is_also_taken_by_it(condition: Any, others: Any, taken: str) -> None:
    first = {"next": "a", "isDefault": True, "condition": condition}
    assert switched(first, {"next": "b", "condition": others}).run() == taken


def test_a_branch_without_a_condition_is_never_taken_and_a_warning() -> None:
    flow = switched({"next": "a"}, {"next": "b", "isDefault": True})
    assert flow.run() == "b"
    assert [i.code for i in flow.issues if i.severity == "warning" and "branches[0]" in i.path] == [
        "branch_without_condition"
    ]


NULLS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"id": "n", "type": "assignment", "output": 1}, {"errorHandler": None, "timeoutHandler": None, "timeout": None}),
    ({"id": "n", "type": "assignment", "output": 1}, {"upstreamOutput": None, "sourceLine": None}),
    ({"id": "n", "type": "assignment", "output": 1}, {"errorHandler": {"strategy": None, "retryTimes": None}}),
    ({"id": "n", "type": "map", "collection": [1], "childFlow": chain(output=1)}, {"concurrent": None}),
    ({"id": "n", "type": "delay", "delaySeconds": 1}, {"delay_unit": None, "eventType": None}),
    ({"id": "n", "type": "approval", "approvalTitle": "t"}, {"allowComments": None, "event_type": None}),
]


@pytest.mark.parametrize(("node", "nulls"), NULLS)
def test_null_in_a_field_that_does_not_take_it_means_left_out(node: dict[str, Any], nulls: dict[str, Any]) -> None:
    given, left_out = (flow_of(chain({**node, **more})).find_node_by_id("n") for more in (nulls, {}))
    assert given is not None and left_out is not None
    fields = [field for field in type(given).model_fields if field != "child_flow"]
    assert [getattr(given, field) for field in fields] == [getattr(left_out, field) for field in fields]


def test_null_in_a_field_of_a_flow_or_a_branch_means_left_out() -> None:
    header = {"expose_env": None, "runtime": None, "flow_id": None, "id": "x", "global_context": None, "timeout": None}
    flow = Flow.model_validate({**chain(output="$FLOW_ID"), **header})
    assert flow.run() == "x"
    assert switched({"next": "a", "condition": TRUE, "priority": None}, {"next": "b", "isDefault": True}).run() == "a"


def test_null_in_a_needed_field_is_told_as_missing() -> None:
    with pytest.raises(FlowLoadError, match="'event_type' is missing"):
        flow_of(chain({"id": "n", "type": "event", "event_type": None}))


def test_null_as_a_target_means_the_documented_default() -> None:
    ends = [{"id": node_id, "type": "end", "output": node_id} for node_id in ("true", "false", "default")]
    start = {"id": "s", "type": "start", "next": "n"}
    fork = {"id": "n", "type": "if", "condition": "$INPUT.yes", "next": None, "else_next": None}
    case = {"id": "n", "type": "case", "target": "$INPUT.yes", "cases": [{"id": "true", "value": 1}], "default": None}
    assert [Flow.model_validate({"nodes": [start, fork, *ends]}).run(yes=yes) for yes in (1, 0)] == ["true", "false"]
    assert [Flow.model_validate({"nodes": [start, case, *ends]}).run(yes=yes) for yes in (1, 0)] == ["true", "default"]


def test_branches_of_if_and_case_are_known_keys_without_effect() -> None:
    fork = flow_of(
        chain({"id": "f", "type": "if", "condition": TRUE, "next": "end", "else_next": "end", "branches": []})
    )
    case = flow_of(chain({"id": "c", "type": "case", "target": 1, "cases": [], "default": "end", "branches": []}))
    assert [i.code for flow in (fork, case) for i in flow.issues if i.code == "unknown_key"] == []


def durable(node: dict[str, Any], **given: Any) -> dict[str, Any]:
    """The first wait of a flow with this node."""
    with Runtime.open("memory:") as runtime:
        execution = runtime.start(flow_of(chain(node)), given)
        execution.wait(timeout=10)
        (wait,) = execution.inspect()["waits"]
        found: dict[str, Any] = wait
        return found


def suspended(node: dict[str, Any], **given: Any) -> Any:
    """The state of a node that waits."""
    step = FlowExecution().run_distributed(flow_of(chain(node)), given)
    while not step["is_suspend"]:
        step = FlowExecution().run_distributed(flow_of(chain(node)), saved_context=step["context"])
    return step["result"]


@pytest.mark.parametrize("amount", [90, "90", "PT90S", "PT1M30S", "$INPUT.n", "{% $INPUT.n %}", "$INPUT.iso"])
@pytest.mark.parametrize("unit", ["seconds"])
def test_a_delay_is_a_number_digits_a_duration_or_computed(amount: Any, unit: str) -> None:
    node = {"id": "d", "type": "delay", "delay_seconds": amount, "delay_unit": unit}
    assert suspended(node, n=90, iso="PT90S")["service_config"]["delay_ms"] == 90_000


def test_a_duration_does_not_depend_on_the_unit() -> None:
    node = {"id": "d", "type": "delay", "delay_seconds": "PT90S", "delay_unit": "days"}
    assert suspended(node)["service_config"]["delay_ms"] == 90_000


@pytest.mark.parametrize("amount", [None, "soon", -1, "P1Y"])
def test_a_delay_that_is_none_is_told_at_load(amount: Any) -> None:
    with pytest.raises(FlowLoadError, match="delay_seconds"):
        flow_of(chain({"id": "d", "type": "delay", "delay_seconds": amount}))


@pytest.mark.parametrize("limit", [0, "0", "PT0S", -1, "soon"])
@pytest.mark.parametrize("kind", ["event", "approval", "redis_queue"])
def test_a_wait_is_limited_by_more_than_nothing(limit: Any, kind: str) -> None:
    fields = {"event_type": "x"} if kind == "event" else {"approval_title": "t"} if kind == "approval" else {}
    node = {"id": "w", "type": kind, "subscription_timeout": limit, "queue_name": "q", **fields}
    with pytest.raises(FlowLoadError, match="subscription_timeout"):
        flow_of(chain({k: v for k, v in node.items() if k != "queue_name" or kind == "redis_queue"}))


@pytest.mark.parametrize("limit", [90, "90", "PT90S", "$INPUT.n", "{% $INPUT.n %}"])
def test_the_limit_of_a_wait_is_a_number_digits_a_duration_or_computed(limit: Any) -> None:
    wait = durable({"id": "w", "type": "event", "event_type": "x", "subscription_timeout": limit}, n=90)
    assert datetime.fromisoformat(wait["deadline"]) - datetime.fromisoformat(wait["since"]) > timedelta(seconds=80)


@pytest.mark.parametrize("timeout", [50, "50", "PT0.05S", "$INPUT.n", "{% $INPUT.n %}"])
def test_a_timeout_is_a_number_digits_a_duration_or_computed(timeout: Any) -> None:
    slow = {"id": "c", "type": "code", "code": "def run(x):\n    import time\n    time.sleep(60)", "timeout": timeout}
    with pytest.raises(NodeTimeoutError):
        Flow.model_validate(chain(slow)).run(n=50)


@pytest.mark.parametrize("most", [2, "2", "$INPUT.n", "{% $INPUT.n %}"])
def test_the_most_rounds_of_a_while_are_a_number_digits_or_computed(most: Any) -> None:
    node = {
        "id": "w",
        "type": "while",
        "condition": TRUE,
        "maxIterations": most,
        "childFlow": chain(output="$INPUT.index"),
    }
    assert Flow.model_validate(chain(node)).run(n=2) == 1


@pytest.mark.parametrize(
    ("node", "field", "config"),
    [
        ({"type": "http_callback"}, "callback_timeout_minutes", ("callback_config", "timeout_minutes", 2)),
        ({"type": "redis_queue", "queue_name": "q"}, "timeout_seconds", ("listen_config", "timeout_seconds", 90)),
        (
            {"type": "kafka_queue", "bootstrap_servers": "h:1", "topic": "t", "group_id": "g"},
            "timeout_ms",
            ("consumer_config", "timeout_ms", 90_000),
        ),
    ],
)
def test_the_times_of_a_service_may_be_durations(
    node: dict[str, Any], field: str, config: tuple[str, str, int]
) -> None:
    part, key, found = config
    assert suspended({"id": "w", **node, field: "PT90S"})["service_config"][part][key] == found


def test_every_wait_for_a_service_says_how_to_retry() -> None:
    for node in ({"type": "delay", "delay_seconds": 1}, {"type": "approval", "approval_title": "t"}):
        config = suspended({"id": "w", **node})["service_config"]
        assert config["retry_config"] == {"max_retries": 3, "retry_delay_ms": 1000, "exponential_backoff": True}


def test_every_field_of_an_approval_may_be_computed() -> None:
    node = {
        "id": "w", "type": "approval", "approval_title": "$INPUT.t", "approval_content": "for {% $INPUT.t %}",
        "approvers": ["ann", "$INPUT.l"], "approval_type": "$INPUT.type", "approval_strategy": "$INPUT.strategy",
        "auto_escalation": "$INPUT.yes", "escalation_timeout_hours": "$INPUT.n",
        "escalation_approvers": ["$INPUT.l"], "form_fields": [{"name": "$INPUT.t"}],
        "allow_comments": "$INPUT.no", "require_comments": "$INPUT.yes", "notification_config": {"to": "$INPUT.t"},
        "event_filter": {"a": "$INPUT.t"}, "event_type": "another",
    }  # fmt: skip
    given = {"t": "T", "l": ["bob", "cleo"], "type": "auto", "strategy": "ALL", "yes": True, "no": False, "n": 5}
    state = suspended(node, **given)
    config = state["service_config"]
    assert (state["event_type"], state["event_filter"]) == ("approval_decision", {"a": "T"})
    assert config["approval_config"] | {"created_time": 0} == {
        "title": "T", "content": "for T", "type": "auto", "created_time": 0,
    }  # fmt: skip
    assert config["approver_config"] == {
        "approvers": ["ann", "bob", "cleo"], "strategy": "all", "auto_escalation": True,
        "escalation_timeout_hours": 5, "escalation_approvers": ["bob", "cleo"],
    }  # fmt: skip
    assert config["form_config"] == {"fields": [{"name": "T"}], "allow_comments": False, "require_comments": True}
    assert config["notification_config"] == {"to": "T"}


@pytest.mark.parametrize(("field", "value"), [("allow_comments", "maybe"), ("approval_strategy", "most")])
def test_a_field_of_an_approval_that_makes_no_sense_fails_when_it_is_computed(field: str, value: str) -> None:
    node = {"id": "w", "type": "approval", "approval_title": "t", field: "$INPUT.v"}
    with pytest.raises(NodeExecutionError, match=field):
        suspended(node, v=value)


def test_the_filter_of_a_service_may_be_computed() -> None:
    node = {"id": "w", "type": "redis_queue", "queue_name": "q", "event_filter": {"a": "$INPUT.t"}}
    state = suspended(node, t=4)
    assert state["event_filter"] == state["service_config"]["event_filter"] == {"a": 4}


def test_a_flow_is_parsed_from_its_text_or_its_document() -> None:
    document = chain(output="$INPUT.a")
    for content in (document, json.dumps(document)):
        flow = parse(content)
        assert flow is not None
        assert flow.run(a=1) == parse_and_run(content, {"a": 1}) == parse_and_run(content, a=1) == 1
    assert (parse(None), parse(""), parse({})) == (None, None, None)


class Pairs(FlowCallback):
    """Writes down what begins and ends, with the code of its error."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_flow_start(self, flow: Any, **kwargs: Any) -> None:
        self.heard.append(f"<{flow.flow_id}")

    def on_flow_end(
        self, flow: Any, result: Any = None, error: Any = None, exception: Any = None, **kwargs: Any
    ) -> None:
        self.heard.append(f"{flow.flow_id}> {error and error['code']}")

    def on_node_start(self, flow: Any, node: Any, **kwargs: Any) -> None:
        self.heard.append(f"({node.id}")

    def on_node_end(
        self, flow: Any, node: Any, result: Any = None, error: Any = None, exception: Any = None, **kwargs: Any
    ) -> None:
        self.heard.append(f"{node.id}) {error and error['code']}")


def heard(document: dict[str, Any], **given: Any) -> list[str]:
    pairs = Pairs()
    try:
        FlowExecution(callback_handlers=[pairs]).execute(flow_of(document), given)
    except (NodeTimeoutError, NodeExecutionError):
        pairs.heard.append("raised")
    return [word for word in pairs.heard if "start" not in word and not word.startswith(("(end", "end)"))]


@pytest.mark.parametrize(("code", "runs"), [(1001, 1), (1002, 2), (7, 2)])
def test_a_request_that_cannot_be_built_is_not_tried_again(code: int, runs: int) -> None:
    made: list[int] = []

    class Failing(Node):
        node_type: ClassVar[str] = "failing"

        def execute(self, execution: Any) -> Any:
            made.append(execution.attempt)
            raise NodeException(code, "no")

    handler = {"retry": {"attempts": 1, "base": 0}}
    with pytest.raises(NodeExecutionError) as caught:
        flow_of(chain({"id": "n", "type": "failing", "errorHandler": handler}), Failing).run()
    assert (caught.value.code, len(made)) == (code, runs)


SLOW = {"id": "slow", "type": "code", "code": "def run(x):\n    import time\n    time.sleep(60)"}
HOST = {"id": "host", "type": "child", "timeout": 100, "childFlow": chain(SLOW, flow_id="inner")}


def test_what_a_timeout_cuts_is_told_to_have_ended() -> None:
    assert heard(chain(HOST, flow_id="outer")) == [
        "<outer", "(host", "<inner", "(slow", "slow) -1", "inner> -1", "host) -1", "outer> -1", "raised",
    ]  # fmt: skip


def test_what_a_handled_timeout_cuts_is_told_to_have_been_cancelled() -> None:
    assert heard(chain({**HOST, "timeoutHandler": {"strategy": "continue"}}, flow_id="outer", output=1)) == [
        "<outer", "(host", "<inner", "(slow", "slow) -4", "inner> -4", "host) None", "outer> None",
    ]  # fmt: skip


def test_branches_that_a_failed_one_cuts_are_told_to_have_ended() -> None:
    failing = chain({"id": "bad", "type": "outside", "input": "$F.div(1, 0)"}, flow_id="right")
    fan = {
        "id": "fan", "type": "parallel",
        "branches": [{"name": "l", "flow": chain(SLOW, flow_id="left")}, {"name": "r", "flow": failing}],
    }  # fmt: skip
    words = heard(chain(fan, flow_id="outer"))
    assert sorted(words[words.index("bad) -520") :]) == [
        "bad) -520", "fan) -520", "left> -520", "outer> -520", "raised", "right> -520", "slow) -520",
    ]  # fmt: skip


def test_the_cause_of_an_error_with_a_code_of_its_own_is_what_the_node_raised() -> None:
    flow = flow_of(chain(outside(input="$F.div(1, 0)", errorHandler={"code": 7, "message": "mine"})))
    with pytest.raises(NodeExecutionError, match="mine") as caught:
        flow.run()
    assert not isinstance(caught.value.__cause__, NodeExecutionError)


def test_the_cause_of_an_error_that_a_host_renamed_is_the_error_below() -> None:
    inner = chain(outside(input="$F.div(1, 0)"))
    flow = flow_of(chain({"id": "k", "type": "child", "childFlow": inner, "errorHandler": {"code": 7}}))
    with pytest.raises(NodeExecutionError) as caught:
        flow.run()
    assert isinstance(caught.value.__cause__, NodeExecutionError)
    assert (caught.value.code, caught.value.__cause__.code) == (7, -520)
