"""Callbacks: what is told, in which order, in one process and by a worker."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import pytest

from plaita import Flow, Runtime
from plaita.base.errors import PlaitaError
from plaita.core.callback import CallbackManager, FlowCallback, LoggerCallback
from plaita.core.executor import FlowExecution
from plaita.node.basic import Node
from tests.support.flows import chain, event, flow_of, outside


class Teller(FlowCallback):
    """Writes down every hook: name, id of the node or flow, and what it was told."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def on_flow_start(self, flow: Any, **kwargs: Any) -> None:
        self.heard.append(("flow_start", flow.flow_id))

    def on_flow_end(
        self, flow: Any, result: Any = None, error: Any = None, exception: BaseException | None = None, **kwargs: Any
    ) -> None:
        self.heard.append(("flow_end", flow.flow_id, result, error and error["code"]))

    def on_flow_suspend(self, flow: Any, **kwargs: Any) -> None:
        self.heard.append(("flow_suspend", flow.flow_id))

    def on_flow_resume(self, flow: Any, **kwargs: Any) -> None:
        self.heard.append(("flow_resume", flow.flow_id))

    def on_node_start(self, flow: Any, node: Any, **kwargs: Any) -> None:
        self.heard.append(("node_start", node.id))

    def on_node_end(
        self,
        flow: Any,
        node: Any,
        result: Any = None,
        error: Any = None,
        exception: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        self.heard.append(("node_end", node.id, result, error and error["code"], kwargs["attempt"]))

    def on_node_retry(
        self, flow: Any, node: Any, error: Any = None, exception: BaseException | None = None, **kwargs: Any
    ) -> None:
        self.heard.append(("node_retry", node.id, kwargs["attempt"], str(exception)))

    def on_node_suspend(self, flow: Any, node: Any, **kwargs: Any) -> None:
        self.heard.append(("node_suspend", node.id))

    def on_node_resume(self, flow: Any, node: Any, **kwargs: Any) -> None:
        self.heard.append(("node_resume", node.id))


class Flaky(Node):
    """Fails the first time."""

    node_type: ClassVar[str] = "flaky"
    calls: ClassVar[int] = 0

    def execute(self, execution: Any) -> Any:
        if execution.attempt == 1:
            raise ConnectionError("not yet")
        return "fine"


def failing(code: Any = None) -> dict[str, Any]:
    node: dict[str, Any] = {"id": "bad", "type": "assignment", "output": "$( 1 / 0 )"}
    return node if code is None else {**node, "errorHandler": {"code": code}}


def told(document: dict[str, Any], *classes: type[Node]) -> list[tuple[Any, ...]]:
    teller = Teller()
    execution = FlowExecution(callback_handlers=[teller])
    try:
        execution.execute(flow_of(document, *classes), {"x": 1})
    except PlaitaError as e:
        teller.heard.append(("raised", type(e).__name__))
    return teller.heard


def test_flows_and_nodes_are_told_in_order_sub_flows_between_their_host() -> None:
    inner = chain({"id": "i", "type": "assignment", "output": 5}, flow_id="inner")
    assert told(chain({"id": "c", "type": "child", "childFlow": inner}, outside("o", input=6), flow_id="f")) == [
        ("flow_start", "f"),
        ("node_start", "start"), ("node_end", "start", None, None, 1),
        ("node_start", "c"),
        ("flow_start", "inner"),
        ("node_start", "start"), ("node_end", "start", None, None, 1),
        ("node_start", "i"), ("node_end", "i", 5, None, 1),
        ("node_start", "end"), ("node_end", "end", 5, None, 1),
        ("flow_end", "inner", 5, None),
        ("node_end", "c", 5, None, 1),
        ("node_start", "o"), ("node_end", "o", 6, None, 1),
        ("node_start", "end"), ("node_end", "end", 6, None, 1),
        ("flow_end", "f", 6, None),
    ]  # fmt: skip


def test_every_round_is_a_flow() -> None:
    rows: dict[str, Any] = {"id": "l", "type": "map", "collection": [1, 2], "childFlow": chain(output="$INPUT.item")}
    found = told(chain(rows))
    assert [h for h in found if h[0] == "flow_end"] == [
        ("flow_end", None, 1, None),
        ("flow_end", None, 2, None),
        ("flow_end", None, [1, 2], None),
    ]
    assert [h[0] for h in found].count("flow_start") == 3


def test_a_failure_is_told_at_every_level_it_passes_with_its_code_there() -> None:
    inner: dict[str, Any] = {"id": "c", "type": "child", "childFlow": chain(failing(), flow_id="inner")}
    found = told(chain({**inner, "errorHandler": {"code": 77}}, flow_id="f"))
    assert found[-6:] == [
        ("node_start", "bad"),
        ("node_end", "bad", None, -520, 1),
        ("flow_end", "inner", None, -520),
        ("node_end", "c", None, 77, 1),
        ("flow_end", "f", None, 77),
        ("raised", "NodeExecutionError"),
    ]


def test_an_error_that_a_handler_took_care_of_is_no_error() -> None:
    handled = {**failing(), "errorHandler": {"strategy": "continue-with", "defaultValue": 3}}
    assert ("node_end", "bad", 3, None, 1) in told(chain(handled))


def test_a_branch_whose_error_is_collected_ends_with_it() -> None:
    branches = [{"name": "a", "flow": chain(failing(), flow_id="a")}]
    fan = {"id": "p", "type": "parallel", "branches": branches, "onBranchError": "collect"}
    found = told(chain(fan))
    assert ("flow_end", "a", None, -520) in found
    assert ("node_end", "bad", None, -520, 1) in found
    assert [h[:2] for h in found].count(("node_end", "p")) == 1


def test_a_retry_is_told_with_its_attempt_and_the_start_only_once() -> None:
    node = {"id": "n", "type": "flaky", "errorHandler": {"retry": {"attempts": 2, "base": 1}}}
    found = [h for h in told(chain(node), Flaky) if h[1] == "n"]
    assert [h[0] for h in found] == ["node_start", "node_retry", "node_end"]
    assert found[1][2] == 1
    assert "not yet" in found[1][3]
    assert found[2] == ("node_end", "n", "fine", None, 2)


def test_a_distributed_execution_tells_suspend_and_resume_and_ends_once() -> None:
    teller = Teller()
    flow = flow_of(chain(event("w"), flow_id="f"))
    step = FlowExecution(callback_handlers=[teller]).run_distributed(flow, {})
    while not step["is_end"]:
        answer: dict[str, Any] = {"resume_type": "cancel"} if step["is_suspend"] else {}
        execution = FlowExecution(callback_handlers=[teller])
        step = execution.run_distributed(flow, saved_context=step["context"], **answer)
    names = [h[:2] for h in teller.heard]
    assert names == [
        ("flow_start", "f"), ("node_start", "start"), ("node_end", "start"), ("node_start", "w"),
        ("node_suspend", "w"), ("flow_suspend", "f"), ("flow_resume", "f"), ("node_resume", "w"), ("node_end", "w"),
        ("node_start", "end"), ("node_end", "end"), ("flow_end", "f"),
    ]  # fmt: skip


def test_a_worker_tells_the_same_after_it_is_stored() -> None:
    teller = Teller()
    document = chain(outside("o", input=6), event("w"), flow_id="f")
    with Runtime.open("memory:", callbacks=[teller]) as runtime:
        run = runtime.start(flow_of(document))
        run.wait()
        assert teller.heard[-2:] == [("node_suspend", "w"), ("flow_suspend", "f")]
        run.resume({"n": 1})
    names = [h[:2] for h in teller.heard]
    assert names == [
        ("flow_start", "f"), ("node_start", "start"), ("node_end", "start"), ("node_start", "o"), ("node_end", "o"),
        ("node_start", "w"), ("node_suspend", "w"), ("flow_suspend", "f"), ("flow_resume", "f"), ("node_resume", "w"),
        ("node_end", "w"), ("node_start", "end"), ("node_end", "end"), ("flow_end", "f"),
    ]  # fmt: skip


class Narrow:
    """Hooks that take no keywords, and one that fails."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def on_node_start(self, flow: Any, node: Any) -> None:
        raise RuntimeError("no")

    def on_node_end(self, flow: Any, node: Any, result: Any, error: Any, exception: Any) -> None:
        self.ended.append(node.id)


def test_a_hook_that_raises_is_logged_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    narrow: Any = Narrow()
    assert FlowExecution(callback_handlers=[narrow]).execute(flow_of(chain(output=4))) == 4
    assert narrow.ended == ["start", "end"]
    assert "Narrow.on_node_start raised RuntimeError: no" in caplog.text


def test_a_child_execution_inherits_each_handler_once() -> None:
    teller = Teller()
    parent = FlowExecution(callback_handlers=[teller])
    child = parent.get_child_execution()
    assert isinstance(child.callback_manager, CallbackManager)
    child.callback_manager.add_handler(teller)
    child.execute(flow_of(chain(output=1, flow_id="f")))
    assert [h[0] for h in teller.heard].count("flow_start") == 1


def test_a_removed_handler_hears_nothing_more() -> None:
    teller = Teller()
    manager = CallbackManager([teller])
    manager.remove_handler(teller)
    FlowExecution(callback_manager=manager).execute(flow_of(chain(output=1)))
    assert teller.heard == []


def test_verbose_logs_every_hook(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "plaita.core.callback"):
        FlowExecution(verbose=True).execute(Flow.model_validate(chain(output=1, flow_id="f")))
    assert "flow f begins" in caplog.text
    assert "node end (end) ended" in caplog.text
    assert isinstance(LoggerCallback(), FlowCallback)
