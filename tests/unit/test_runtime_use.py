"""``Runtime`` as somebody uses it who did not read everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from plaita import Flow, Node, Runtime
from plaita.base.errors import FlowCancelledException, FlowLoadError, InputError, NotFound

START = {"id": "s", "type": "start", "next": "n"}
END = {"id": "e", "type": "end", "output": "$NODE.n"}
PURE = {"id": "n", "type": "assignment", "output": 1, "next": "e"}


class NeverRegistered(Node):
    """A custom node that nothing but a flow knows."""

    node_type: ClassVar[str] = "never_registered"

    def execute(self, execution: Any) -> int:
        return 2


class Asks(Node):
    """Sets a root and asks for a global variable, both named by its input."""

    node_type: ClassVar[str] = "asks"

    def execute(self, execution: Any) -> Any:
        asked = execution.evaluate("$INPUT")
        execution.set_state(asked.get("set", "mine"), 1)
        return execution.get_global_variable(asked.get("get", "a"), "none")


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    with Runtime.open("memory:") as opened:
        yield opened


def test_a_flow_of_plain_documents_can_be_started(runtime: Runtime) -> None:
    assert runtime.start(Flow(nodes=[START, PURE, END])).wait()["output"] == 1


def test_a_flow_brings_its_own_node_classes(runtime: Runtime) -> None:
    own = NeverRegistered(id="n", next="e")
    inner = {"id": "n", "type": "child", "childFlow": Flow(nodes=[START, own, END]), "next": "e"}
    assert runtime.start(Flow(nodes=[START, inner, END])).wait()["output"] == 2


def test_a_flow_that_cannot_run_is_not_published(runtime: Runtime) -> None:
    with pytest.raises(FlowLoadError, match="leads to 'e'"):
        runtime.publish(Flow(flow_id="broken", nodes=[START, PURE]))


def test_an_input_that_is_no_object_is_refused_by_name(runtime: Runtime) -> None:
    with pytest.raises(InputError, match="is an object, not list"):
        runtime.start(Flow(nodes=[START, PURE, END]), [1])  # type: ignore[arg-type]


async def test_everything_that_can_be_called_can_be_awaited() -> None:
    task = {"id": "n", "type": "approval", "approval_title": "Pay?", "approvers": ["ann"], "next": "e"}
    flow = Flow(flow_id="asks", nodes=[START, task, END])
    async with await Runtime.aopen("memory:") as runtime:
        run = await runtime.astart(flow, tags=("eu",))
        assert (await run.await_())["status"] == "suspended"
        [asked] = await runtime.ainbox()
        assert await asked.aapprove(by="ann") == "approved"
        assert (await run.aresult())["event_data"]["approved"] is True
        other = await runtime.astart(flow)
        assert await other.acancel() == "cancelled"
        with pytest.raises(FlowCancelledException):
            await other.aresult()
        assert [e["execution_id"] for e in await runtime.aexecutions(tag="eu")] == [run.id]
        assert (await other.ahistory())[-1]["event"] == "run_ended"
        await other.adelete()
        with pytest.raises(NotFound):
            await other.ainspect()


def test_a_cursor_that_no_page_gave_is_refused(runtime: Runtime) -> None:
    with pytest.raises(InputError, match="cursor"):
        runtime.executions(cursor="elsewhere")


def test_a_closed_runtime_says_that_it_is_closed(runtime: Runtime) -> None:
    runtime.close()
    with pytest.raises(RuntimeError, match="the runtime is closed"):
        runtime.inbox()


@pytest.mark.parametrize("name", ["NODE", "$INPUT", "ENV", "", "__class__", "a.b"])
def test_a_node_is_told_which_roots_it_cannot_set(runtime: Runtime, name: str) -> None:
    shape = runtime.start(Flow(nodes=[START, Asks(id="n", next="e"), END]), {"set": name}).wait()
    assert "a node cannot set this root" in shape["error"]["message"]


@pytest.mark.parametrize("name", ["a", 'a"b', "a\\b", "a\nb", "ключ", 'a"] or $INPUT["get'])
def test_the_name_of_a_global_variable_is_never_code(runtime: Runtime, name: str) -> None:
    nodes = [START, Asks(id="n", next="e"), END]
    knows, knows_not = Flow(nodes=nodes, global_context={name: "found"}), Flow(nodes=nodes)
    assert runtime.start(knows, {"get": name}).wait()["output"] == "found"
    assert runtime.start(knows_not, {"get": name}).wait()["output"] == "none"


def test_the_runtime_looks_after_its_store(tmp_path: Any) -> None:
    with Runtime.open(f"sqlite:///{tmp_path / 'one.db'}") as opened:
        opened.publish(Flow(flow_id="f", nodes=[START, PURE, END]))
        assert [(f["flow_id"], len(f["version"])) for f in opened.flows()] == [("f", 8)]
        run = opened.start("f")
        run.wait()
        assert run.explain()[0]["code"] == "completed"
        opened.backup(tmp_path / "two.db")
        assert opened.prune(0) == 1
    with Runtime.open(f"sqlite:///{tmp_path / 'two.db'}") as copy:
        assert copy.execution(run.id).inspect()["output"] == 1


async def test_its_asynchronous_twins_do_the_same(tmp_path: Any) -> None:
    async with await Runtime.aopen(f"sqlite:///{tmp_path / 'one.db'}") as opened:
        await opened.apublish(Flow(flow_id="f", nodes=[START, PURE, END]))
        run = await opened.astart("f")
        await run.await_()
        assert [f["flow_id"] for f in await opened.aflows()] == ["f"]
        assert (await run.aexplain())[0]["code"] == "completed"
        await opened.abackup(tmp_path / "two.db")
        assert await opened.aprune(0) == 1
