"""``Flow.run`` and ``Flow.arun``: real calls, real threads, nothing stored."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, ClassVar

import pytest

from plaita.base.errors import (
    ErrorResultException,
    ExecutionDeadlineError,
    FlowErrorException,
    FlowExecutionException,
    InputError,
    NodeExecutionError,
    NodeTimeoutError,
    WaitNotPossible,
)
from plaita.core.drivers import Options, arun_flow, run_flow
from plaita.core.errors import FlowResultError, NodeException
from plaita.core.flow import Flow
from plaita.node.basic import Node
from tests.support.flows import chain, event, flow_of, outside, parallel

LET_GO = threading.Event()


class Stuck(Node):
    """Ignores that nobody waits for it any more, until the test ends."""

    node_type: ClassVar[str] = "stuck"

    def execute(self, execution: Any) -> Any:
        LET_GO.wait(10)
        return "too late"


class Patient(Node):
    """Waits for a very long time, and tells when it is cancelled."""

    node_type: ClassVar[str] = "patient"
    ended: ClassVar[list[str]] = []

    async def arun(self, execution: Any) -> Any:
        ended = type(self).ended  # the list of the test that began it: an abandoned call ends when it pleases
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(self.id)
            raise


class Raising(Node):
    node_type: ClassVar[str] = "raising"
    what: str

    def execute(self, execution: Any) -> Any:
        raise {
            "exit": SystemExit(3),
            "node": NodeException(42, "own code"),
            "result": FlowResultError("E9", "said no"),
            "os": OSError("disk full"),
        }[self.what]


class Cancels(Node):
    node_type: ClassVar[str] = "cancels"

    async def arun(self, execution: Any) -> Any:
        raise asyncio.CancelledError


class Exits(Node):
    node_type: ClassVar[str] = "exits"

    async def arun(self, execution: Any) -> Any:
        raise GeneratorExit


class Odd(Node):
    node_type: ClassVar[str] = "odd"

    def execute(self, execution: Any) -> Any:
        return {"tuple": (1, 2)}


@pytest.fixture(autouse=True)
def _freed() -> Any:
    LET_GO.clear()
    Patient.ended = []
    yield
    LET_GO.set()


def flow(*nodes: dict[str, Any], **header: Any) -> Flow:
    return flow_of(chain(*nodes, **header), Stuck, Patient, Raising, Cancels, Exits, Odd)


def both(of: Flow, value: dict[str, Any] | None = None) -> list[Any]:
    """The outcome of the synchronous and of the asyncio driver: an output or an exception."""
    found: list[Any] = []
    for is_async in (False, True):
        try:
            found.append(asyncio.run(of.arun(value)) if is_async else of.run(value))
        except Exception as e:  # noqa: BLE001 - the exception is the outcome
            found.append(e)
    return found


def test_a_synchronous_node_that_exceeds_its_timeout_is_abandoned() -> None:
    made = flow({"id": "a", "type": "stuck", "timeout": 30})
    with pytest.raises(NodeTimeoutError) as refused:
        made.run()
    assert (refused.value.code, refused.value.path, refused.value.kind) == (-1, ("a",), "timeout")


def test_a_host_s_timeout_abandons_a_synchronous_node_below_it() -> None:
    child = {"id": "c", "type": "child", "childFlow": chain({"id": "a", "type": "stuck"}), "timeout": 30}
    assert flow({**child, "timeoutHandler": {"strategy": "continue-with", "defaultValue": "on"}}).run() == "on"


def test_a_coroutine_that_exceeds_its_timeout_is_cancelled() -> None:
    made = flow(
        {
            "id": "a",
            "type": "patient",
            "timeout": 30,
            "timeoutHandler": {"strategy": "continue-with", "defaultValue": 1},
        }
    )
    assert asyncio.run(made.arun()) == 1
    assert Patient.ended == ["a"]
    assert made.run() == 1


def test_the_timeout_of_a_flow_ends_it() -> None:
    for outcome in both(flow({"id": "a", "type": "patient"}, timeout=30)):
        assert isinstance(outcome, ExecutionDeadlineError)
    with pytest.raises(ExecutionDeadlineError):
        run_flow(flow({"id": "a", "type": "patient"}), {}, Options(active_ms_max=20))


def test_an_asynchronous_node_runs_in_a_synchronous_run_and_beside_others() -> None:
    class Meets(Node):
        node_type: ClassVar[str] = "meets"

        async def arun(self, execution: Any) -> Any:
            return execution.evaluate("$INPUT.v")

    fan = parallel({"a": chain({"id": "x", "type": "meets"}), "b": chain(outside(input="$INPUT.v"))})
    made = flow_of(chain(fan), Meets)
    assert both(made, {"v": 4}) == [{"a": 4, "b": 4}] * 2


def test_a_wait_in_a_plain_run_is_refused_and_no_handler_catches_it() -> None:
    inner = chain(event(errorHandler={"strategy": "continue"}, timeoutHandler={"strategy": "continue"}))
    fan = parallel({"a": inner}, onBranchError="collect", errorHandler={"strategy": "continue"})
    for outcome in both(flow(fan)):
        assert isinstance(outcome, WaitNotPossible)
        assert "p:a/wait" in str(outcome) and "plaita run" in outcome.hint


def test_a_flow_says_beforehand_where_it_may_wait() -> None:
    loop = {"id": "l", "type": "loop", "collection": [1], "childFlow": chain(event())}
    assert flow(loop).may_wait() == ("l/wait",)
    assert flow(outside()).may_wait() == ()


@pytest.mark.parametrize(
    ("what", "cls", "code"),
    [
        ("exit", NodeExecutionError, -520),
        ("node", NodeExecutionError, 42),
        ("os", NodeExecutionError, -520),
        ("result", ErrorResultException, "E9"),
    ],
)
def test_whatever_a_node_raises_becomes_a_documented_exception(what: str, cls: type[Exception], code: Any) -> None:
    for outcome in both(flow({"id": "a", "type": "raising", "what": what})):
        assert type(outcome) is cls and isinstance(outcome, FlowExecutionException)
        assert (outcome.code, outcome.path) == (code, ("a",))


@pytest.mark.parametrize("kind", ["cancels", "exits"])
def test_a_coroutine_that_raises_what_ends_coroutines_fails_like_any_other(kind: str) -> None:
    for outcome in both(flow({"id": "a", "type": kind})):
        assert isinstance(outcome, NodeExecutionError)


def test_a_result_that_is_not_json_is_a_failure_of_the_node() -> None:
    for outcome in both(flow({"id": "a", "type": "odd"})):
        assert isinstance(outcome, NodeExecutionError)
        assert "tuple" in str(outcome)


def test_nobody_can_change_the_caller_s_input_or_another_node_s_result() -> None:
    class Greedy(Node):
        node_type: ClassVar[str] = "greedy"

        def execute(self, execution: Any) -> Any:
            for read in ("$INPUT.list", "$NODE.a"):
                execution.evaluate(read).append(9)
            execution.get_state("INPUT")["list"].clear()
            return None

    given = {"list": [1]}
    node = {"id": "a", "type": "assignment", "output": "$INPUT.list"}
    made = flow_of(chain(node, {"id": "g", "type": "greedy"}, output=["$NODE.a", "$INPUT.list"]), Greedy)
    assert made.run(given) == [[1], [1]]
    assert given == {"list": [1]}


def test_a_value_that_contains_itself_is_refused_at_the_door() -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    for outcome in both(flow(outside()), value):
        assert isinstance(outcome, InputError)


def test_a_missing_next_names_the_node_when_it_is_reached() -> None:
    document = {
        "nodes": [
            {"id": "start", "type": "start", "next": "a"},
            {"id": "a", "type": "mock"},
            {"id": "e", "type": "end"},
        ]
    }
    for outcome in both(flow_of(document)):
        assert outcome.kind == "no_branch_matched" and type(outcome) is FlowErrorException
        assert outcome.path == ("a",) and "'a'" in str(outcome)


def test_a_detached_branch_runs_before_the_run_returns_and_its_error_is_told() -> None:
    told: list[str] = []
    seen: list[Any] = []

    class Sees(Node):
        node_type: ClassVar[str] = "sees"

        def execute(self, execution: Any) -> Any:
            seen.append(execution.evaluate(["$INPUT.v", "$NODE.before"]))
            raise OSError("nobody minds")

    before = {"id": "before", "type": "mock", "value": 1}
    branches = {"kept": chain(outside(input=2)), "left": chain({"id": "s", "type": "sees"})}
    made = flow_of(chain(before, parallel(branches, joinBranches=["kept"])), Sees)
    options = Options(warn=told.append)
    assert run_flow(made, {"v": 5}, options) == {"kept": 2}
    assert asyncio.run(arun_flow(made, {"v": 5}, options)) == {"kept": 2}
    assert seen == [[5, 1]] * 2
    assert len(told) == 2 and "nobody minds" in told[0] and "/p:left" in told[0]


def test_an_idempotency_key_names_the_place_and_stays_over_retries() -> None:
    keys: list[str] = []

    class Flaky(Node):
        node_type: ClassVar[str] = "flaky"

        def execute(self, execution: Any) -> Any:
            keys.append(execution.idempotency_key)
            if execution.attempt == 1:
                raise OSError("once")
            return execution.attempt

    retry = {"retry": {"attempts": 1, "base": 1}}
    loop = {
        "id": "l",
        "type": "loop",
        "collection": [0],
        "childFlow": chain({"id": "f", "type": "flaky", "errorHandler": retry}),
    }
    assert flow_of(chain(loop), Flaky).run() == 2
    assert len(set(keys)) == 1 and keys[0].endswith("/l:0@f#1")
