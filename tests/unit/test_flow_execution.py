"""``FlowExecution``: running whole, step by step, and from a saved context."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from plaita.base.errors import (
    ExecutionDeadlineError,
    FlowCancelledException,
    FlowErrorException,
    FlowExecutionException,
    InputError,
    NodeExecutionError,
    NotSupported,
    ResumeError,
    ResumeGuardError,
)
from plaita.core.callback import FlowCallback
from plaita.core.context import ExecutionContext
from plaita.core.executor import ExecutionMode, FlowExecution
from plaita.core.flow import Flow
from plaita.node.basic import Node
from tests.support.flows import chain, event, flow_of, outside

STEP_KEYS = {"id", "type", "name", "result", "branch", "is_end", "is_suspend", "execution_id", "context"}
ADD = {"id": "a", "type": "assignment", "output": "$F.add($INPUT.x, 1)"}


class Bus:
    """Keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: dict[str, dict[str, Any]] = {}
        self.left: list[str] = []

    async def register_subscription(self, **details: Any) -> str:
        self.asked[f"s{len(self.asked)}"] = details
        return f"s{len(self.asked) - 1}"

    def unregister_subscription(self, subscription_id: str) -> None:
        self.left.append(subscription_id)


class Deaf(Bus):
    async def register_subscription(self, **details: Any) -> str:
        raise ConnectionError("nobody there")


class Stuck(Node):
    """Tells that it runs, and waits to be let go."""

    node_type: ClassVar[str] = "stuck"
    runs: ClassVar[threading.Event] = threading.Event()

    def execute(self, execution: Any) -> Any:
        self.runs.set()
        execution.cancel_event.wait(10)
        return "late"


class RunsAnother(Node):
    """Runs a flow of its own."""

    node_type: ClassVar[str] = "runs_another"

    def execute(self, execution: Any) -> Any:
        inner = Flow.model_validate(chain(ADD))
        return execution.run_compatible(inner, False, x=execution.evaluate("$INPUT.x"))


class Keeper(FlowCallback):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_flow_start(self, flow: Any, **kwargs: Any) -> None:
        self.heard.append("flow_start")

    def on_flow_end(self, flow: Any, *args: Any, **kwargs: Any) -> None:
        self.heard.append("flow_end")

    def on_node_end(self, flow: Any, node: Any, *args: Any, **kwargs: Any) -> None:
        self.heard.append(node.id)


def drive(flow: Flow, value: dict[str, Any], **options: Any) -> Iterator[dict[str, Any]]:
    """Every distributed step, each from the JSON of the one before, until it ends or waits."""
    step = FlowExecution(**options).run_distributed(flow, value)
    while True:
        yield step
        if step["is_end"] or step["is_suspend"]:
            return
        saved = json.loads(json.dumps(step["context"]))
        step = FlowExecution(**options).run_distributed(flow, saved_context=saved)


def last(flow: Flow, value: dict[str, Any], **options: Any) -> dict[str, Any]:
    return list(drive(flow, value, **options))[-1]


def test_a_step_has_the_documented_keys_and_one_node_each() -> None:
    steps = list(flow_of(chain(ADD, flow_id="f")).debug(x=1))
    assert [(s["id"], s["type"], s["result"], s["is_end"]) for s in steps] == [
        ("start", "start", None, False),
        ("a", "assignment", 2, False),
        ("end", "end", 2, True),
    ]
    assert all(set(step) == STEP_KEYS for step in steps)


def test_the_context_of_a_step_is_a_snapshot() -> None:
    steps = flow_of(chain(ADD, output="$INPUT.x")).debug(x=1)
    next(steps)["context"]["$INPUT"]["x"] = 9
    assert list(steps)[-1]["result"] == 1


def test_a_flow_driven_over_json_ends_as_one_that_runs() -> None:
    inner = chain({"id": "n", "type": "assignment", "output": "$( $INPUT.item + $NODE.a )"})
    rows: dict[str, Any] = {"id": "m", "type": "map", "collection": [1, 2, 3], "childFlow": inner}
    flow = flow_of(chain(ADD, rows, outside("o", input="$NODE.m"), output=["$NODE.m", "$NODE.o", "$GLOBAL.flow_id"]))
    assert last(flow, {"x": 1})["result"] == flow.run(x=1)


def test_branching_steps_name_their_branch() -> None:
    choose: dict[str, Any] = {"id": "c", "type": "if", "next": "a", "else_next": "end"}
    choose["condition"] = {"field": "$INPUT.x", "operator": "gt", "value": 0}
    flow = flow_of({"nodes": [*chain(choose)["nodes"], {**ADD, "next": "end"}]})
    steps = list(drive(flow, {"x": 1}))
    assert [(s["id"], s["branch"]) for s in steps] == [("start", ""), ("c", "a"), ("a", ""), ("end", "")]


def test_a_wait_suspends_and_its_event_goes_on() -> None:
    bus = Bus()
    flow = flow_of(chain(event("w", eventFilter={"order.id": 9}, subscriptionTimeout=3), flow_id="f"))
    step = last(flow, {}, event_bus=bus)
    assert step["is_suspend"]
    assert step["result"]["status"] == "pending"
    asked = bus.asked[step["result"]["subscription_id"]]
    assert asked["filter_condition"] == {"order.id": 9}
    assert (asked["flow_id"], asked["node_id"], asked["correlation_id"]) == ("f", "w", step["execution_id"])
    assert 2 < asked["timeout"] <= 3
    resumed = FlowExecution(event_bus=bus).run_distributed(
        flow, saved_context=step["context"], resume_type="event", resume_data={"subscription_id": "s0", "n": 5}
    )
    assert (resumed["id"], resumed["is_suspend"], resumed["is_end"]) == ("w", False, False)
    assert resumed["result"]["event_data"] == {"subscription_id": "s0", "n": 5}
    assert bus.left == ["s0"]
    assert FlowExecution().run_distributed(flow, saved_context=resumed["context"])["is_end"]


def test_the_binding_key_is_not_part_of_the_answer() -> None:
    flow = flow_of(chain(event("w")))
    step = last(flow, {}, event_bus=Bus())
    found = FlowExecution(event_bus=Bus()).run_distributed(
        flow, saved_context=step["context"], resume_type="event", resume_data={"__plaita_subscription_id": "s0"}
    )
    assert found["result"] == {**step["result"], "status": "completed", "event_data": {}}


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        ("event", {"n": 1}, "carries no subscription_id"),
        ("timeout", None, "carries no subscription_id"),
        ("event", {"subscription_id": "other"}, "subscription 'other'"),
        ("event", {"subscription_id": "s0", "event_type": "refund"}, "'refund'"),
        ("continue", None, "waits: answer it"),
        ("retry", None, "waits: answer it"),
    ],
)
def test_an_answer_that_does_not_belong_to_the_wait_changes_nothing(kind: str, data: Any, why: str) -> None:
    flow = flow_of(chain(event("w")))
    step = last(flow, {}, event_bus=Bus())
    with pytest.raises(ResumeGuardError, match=why):
        FlowExecution().run_distributed(flow, saved_context=step["context"], resume_type=kind, resume_data=data)
    good = {"subscription_id": "s0"}
    FlowExecution().run_distributed(flow, saved_context=step["context"], resume_type="event", resume_data=good)


def test_cancel_needs_no_binding_and_the_flow_goes_on() -> None:
    flow = flow_of(chain(event("w")))
    step = last(flow, {}, event_bus=Bus())
    found = FlowExecution().run_distributed(flow, saved_context=step["context"], resume_type="cancel")
    assert found["result"]["status"] == "cancelled"
    assert FlowExecution().run_distributed(flow, saved_context=found["context"])["is_end"]


def test_waits_inside_rounds_and_branches_suspend_too() -> None:
    rows: dict[str, Any] = {"id": "l", "type": "loop", "collection": [1, 2], "childFlow": chain(event("w"), output=7)}
    flow = flow_of(chain(rows))
    step = last(flow, {}, event_bus=Bus())
    for _ in range(2):
        assert (step["id"], step["is_suspend"]) == ("l", True)
        step = FlowExecution(event_bus=Bus()).run_distributed(
            flow, saved_context=step["context"], resume_type="event", resume_data={"subscription_id": "s0"}
        )
    assert (step["id"], step["result"], step["is_suspend"]) == ("l", 7, False)


def test_a_bus_that_refuses_fails_the_step_by_name() -> None:
    with pytest.raises(FlowErrorException, match=r"'w' cannot wait: .*nobody there"):
        last(flow_of(chain(event("w"))), {}, event_bus=Deaf())


def test_without_the_frames_the_cursor_follows_from_the_documented_keys() -> None:
    choose: dict[str, Any] = {"id": "c", "type": "if", "next": "a", "else_next": "end"}
    choose["condition"] = {"field": "$INPUT.x", "operator": "gt", "value": 0}
    flow = flow_of({"nodes": [*chain(choose)["nodes"], {**ADD, "next": "end"}]})
    context = {"$INPUT": {"x": 1}, "$NODE": {"start": None, "c": "a"}, "$LAST_NODE": "c", "$BRANCH": "a"}
    step = FlowExecution().run_distributed(flow, saved_context=context)
    assert (step["id"], step["result"]) == ("a", 2)


def test_a_pending_node_of_a_foreign_context_can_be_answered() -> None:
    flow = flow_of(chain(event("w")))
    pending = {"event_type": "paid", "event_filter": {}, "status": "pending", "subscription_id": "x7"}
    context = {"$INPUT": {}, "$NODE": {"start": None, "w": pending}, "$LAST_NODE": "w", "$BRANCH": None}
    found = FlowExecution().run_distributed(
        flow, saved_context=context, resume_type="event", resume_data={"subscription_id": "x7", "ok": True}
    )
    assert found["result"]["status"] == "completed"


def test_a_changed_result_in_a_context_counts() -> None:
    flow = flow_of(chain(ADD, output="$NODE.a"))
    steps = drive(flow, {"x": 1})
    next(steps)
    context = next(steps)["context"]
    context["$NODE"]["a"] = 40
    assert FlowExecution().run_distributed(flow, saved_context=context)["result"] == 40


@pytest.mark.parametrize("frames", [True, False])
def test_stepping_past_the_end_is_an_error(frames: bool) -> None:
    flow = flow_of(chain(ADD))
    context = last(flow, {"x": 1})["context"]
    if not frames:
        del context["$FRAMES"]
    with pytest.raises(ResumeError, match="has ended"):
        FlowExecution().run_distributed(flow, saved_context=context)


@pytest.mark.parametrize(
    ("context", "why"),
    [
        ({"$LAST_NODE": "gone", "$NODE": {}}, "'gone' is not a node"),
        ({"$NODE": []}, r"\$NODE: is an object"),
        ({"$INPUT": {1: 2}}, "context"),
    ],
)
def test_a_context_that_makes_no_sense_is_refused_with_its_place(context: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        FlowExecution().run_distributed(flow_of(chain(ADD)), saved_context=context)


def test_errors_keep_their_class_and_code_in_every_mode() -> None:
    flow = flow_of(chain({**ADD, "errorHandler": {"code": 77}}))
    for mode in ExecutionMode:
        with pytest.raises(NodeExecutionError) as failed:
            found = FlowExecution.run(flow, {"x": "text"}, mode=mode)
            while mode is ExecutionMode.DISTRIBUTED:
                found = FlowExecution.run(flow, mode=mode, context=found["context"])
            list(found)
        assert failed.value.code == 77


def test_the_exception_that_a_node_raised_is_the_cause() -> None:
    class Raising(Node):
        node_type: ClassVar[str] = "raising"

        def execute(self, execution: Any) -> Any:
            raise KeyError("k")

    with pytest.raises(NodeExecutionError) as failed:
        flow_of(chain({"id": "n", "type": "raising"}), Raising).run()
    assert isinstance(failed.value.__cause__, KeyError)


def test_the_smaller_of_two_timeouts_counts() -> None:
    forever = {"id": "w", "type": "while", "maxIterations": 10**9, "childFlow": chain(output=1)}
    forever["condition"] = {"field": 1, "operator": "eq", "value": 1}
    with pytest.raises(ExecutionDeadlineError):
        FlowExecution().execute(flow_of(chain(forever, timeout=60_000)), {}, timeout="PT0.05S")


def test_cancel_from_another_thread_ends_the_run_and_tells_the_node() -> None:
    execution = FlowExecution()
    Stuck.runs.clear()

    def cancel() -> None:
        Stuck.runs.wait(10)
        execution.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(FlowCancelledException):
        execution.execute(flow_of(chain({"id": "n", "type": "stuck", "timeout": 10_000}), Stuck))
    canceller.join()
    assert execution.cancel_requested


def test_one_execution_runs_one_flow_at_a_time() -> None:
    execution = FlowExecution()
    steps = execution.execute(flow_of(chain(ADD)), {"x": 1}, lazy=True)
    next(steps)
    with pytest.raises(FlowExecutionException, match="runs already"):
        execution.execute(flow_of(chain(ADD)), {"x": 1})
    steps.close()
    assert execution.execute(flow_of(chain(ADD)), {"x": 1}) == 2


async def test_one_execution_runs_one_flow_at_a_time_in_a_loop_too() -> None:
    execution, flow = FlowExecution(), flow_of(chain({"id": "n", "type": "stuck"}), Stuck)
    Stuck.runs.clear()
    first = asyncio.create_task(execution.arun_compatible(flow))
    await asyncio.to_thread(Stuck.runs.wait, 10)
    with pytest.raises(FlowExecutionException, match="runs already"):
        await execution.arun_compatible(flow_of(chain(ADD)), x=1)
    execution.cancel()
    with pytest.raises(FlowCancelledException):
        await first
    assert await execution.arun_compatible(flow_of(chain(ADD)), x=1) == 2
    assert not execution.cancel_requested


def test_a_closed_generator_still_tells_the_end() -> None:
    keeper = Keeper()
    steps = FlowExecution(callback_handlers=[keeper]).execute(flow_of(chain(ADD)), {"x": 1}, lazy=True)
    next(steps)
    steps.close()
    assert keeper.heard == ["flow_start", "start", "flow_end"]


def test_after_a_run_its_context_can_be_read() -> None:
    execution = FlowExecution()
    execution.execute(flow_of(chain(ADD, flow_id="f")), {"x": 1})
    assert execution.evaluate("{% $NODE.a %} of $FLOW_ID") == "2 of $FLOW_ID"
    assert (execution.state.flow_id, execution.get_state("$INPUT")) == ("f", {"x": 1})
    assert execution.get_global_variable("run_token") == execution.execution_id


async def test_the_asynchronous_twin_gives_the_same() -> None:
    flow = flow_of(chain(ADD, outside("o", input="$NODE.a")))
    assert await FlowExecution().arun_compatible(flow, x=1) == 2
    steps = await FlowExecution().arun_compatible(flow, True, x=1)
    assert [step["id"] async for step in steps] == ["start", "a", "o", "end"]


def test_a_node_may_run_a_flow_of_its_own() -> None:
    keeper = Keeper()
    flow = flow_of(chain({"id": "n", "type": "runs_another"}), RunsAnother)
    assert FlowExecution(callback_handlers=[keeper]).execute(flow, {"x": 4}) == 5
    assert keeper.heard == [
        "flow_start",
        "start",
        "flow_start",
        "start",
        "a",
        "end",
        "flow_end",
        "n",
        "end",
        "flow_end",
    ]


@pytest.mark.parametrize("options", [{"express_prefix": "#"}, {"express_input_name": "IN"}, {"surprise": 1}])
def test_options_without_a_meaning_here_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(NotSupported, match=next(iter(options))):
        FlowExecution.run(flow_of(chain(ADD)), {"x": 1}, **options)


def test_the_documented_defaults_of_those_options_are_accepted() -> None:
    assert FlowExecution.run(flow_of(chain(ADD)), {"x": 1}, express_prefix="$", express_input_name="INPUT") == 2


def test_a_context_evaluates_and_reads_its_parent() -> None:
    parent = ExecutionContext()
    parent.set_state("$INPUT", {"a": 1})
    child = parent.child()
    child.set_state("INPUT", {"b": 2})
    child.set_scratch("$mine", 3)
    assert child.evaluate(["$INPUT.b", "$PARENT.$INPUT.a", "$mine"]) == [2, 1, 3]
    assert "$mine" not in child.to_dict()
