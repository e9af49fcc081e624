"""The documented storages: in memory, and over a store that other processes move."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plaita.backends.memory import MemoryBackend
from plaita.backends.sqlite import SqliteBackend
from plaita.base.errors import Conflict, FlowLoadError, InputError, NotFound, NotSupported
from plaita.core.executor import FlowExecution
from plaita.core.flow import Flow
from plaita.ports.backend import Backend
from plaita.runtime import Runtime
from plaita.server.factory import create_storage_component
from plaita.storage import (
    ExecutionState,
    ExecutionStorage,
    FlowStorage,
    MemoryExecutionStorage,
    MemoryFlowStorage,
    OpenedStore,
    StoreExecutionStorage,
    StoreFlowStorage,
)
from plaita.storage.redis import execution_state_ttl_seconds
from plaita.testing.conformance.stage import start as submission
from tests.support.flows import chain, event

ADD = {"id": "a", "type": "assignment", "output": "$F.add($INPUT.x, 1)"}
WAITS = chain(ADD, event("w", eventFilter={"n": 1}), output="$NODE.w.event_data", flow_id="news", version="1")


def state(execution_id: str = "e", **fields: Any) -> ExecutionState:
    return ExecutionState(**{"execution_id": execution_id, "context": {}, **fields})


@pytest.fixture
def memory() -> MemoryExecutionStorage:
    return MemoryExecutionStorage()


def open_memory(_: Path) -> Backend:
    return MemoryBackend()


def open_sqlite(folder: Path) -> Backend:
    return SqliteBackend(folder / "s.db")


@pytest.fixture(params=[open_memory, open_sqlite], ids=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenedStore]:
    opened: Callable[[Path], Backend] = request.param
    with OpenedStore(lambda: opened(tmp_path)) as found:
        yield found


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    with Runtime.open(f"sqlite:///{tmp_path}/r.db") as found:
        yield found


def suspended(execution_id: str) -> dict[str, Any]:
    """The context of an execution that waits, without what only this system writes into it."""
    flow = Flow.model_validate(WAITS)
    step = FlowExecution().run_distributed(flow, {"x": 1}, execution_id=execution_id)
    while not step["is_suspend"]:
        step = FlowExecution().run_distributed(flow, saved_context=step["context"])
    context: dict[str, Any] = json.loads(json.dumps(step["context"]))
    del context["$FRAMES"]
    return context


def test_a_state_comes_back_as_a_copy(memory: MemoryExecutionStorage) -> None:
    given = state(context={"$NODE": {"a": [1]}}, status="suspended", error={"code": -1})
    assert memory.save_execution_state("e", given)
    given.context["$NODE"]["a"].append(2)
    found = memory.load_execution_state("e")
    assert found is not None and found.context == {"$NODE": {"a": [1]}}
    found.context.clear()
    assert memory.load_execution_state("e") == state(
        context={"$NODE": {"a": [1]}}, status="suspended", error={"code": -1}
    )


def test_a_state_is_json_and_goes_under_its_own_id(memory: MemoryExecutionStorage) -> None:
    with pytest.raises(InputError, match=r"state\.context\.a"):
        memory.save_execution_state("e", state(context={"a": object()}))
    with pytest.raises(InputError, match="is of 'e', not of 'f'"):
        memory.save_execution_state("f", state())


def test_deleting_answers_whether_there_was_one_and_leaves_a_tombstone(memory: MemoryExecutionStorage) -> None:
    memory.save_execution_state("e", state())
    assert (memory.delete_execution_state("e"), memory.delete_execution_state("e")) == (True, False)
    assert memory.load_execution_state("e") is None
    tombstone = memory.load_execution_tombstone("e")
    assert tombstone is not None and tombstone["tenant"] == "default" and tombstone["reason"] == "execution_deleted"
    memory.save_execution_state("e", state())
    assert memory.load_execution_tombstone("e") is None


LISTED = [("b", "error", "2024-02-01"), ("a", "running", None), ("c", "error", "2024-01-01")]


@pytest.mark.parametrize(("asked", "found"), [
    ({}, "bac"),
    ({"order_by": "start_time"}, "acb"),
    ({"order_by": "-start_time"}, "bca"),
    ({"order_by": "execution_id", "limit": 1, "offset": 1}, "b"),
    ({"query": {"status": "error"}}, "bc"),
    ({"query": {"status": "error", "start_time": "2024-01-01"}}, "c"),
    ({"limit": 0}, ""),
])  # fmt: skip
def test_states_are_listed_by_their_fields(memory: MemoryExecutionStorage, asked: dict[str, Any], found: str) -> None:
    for execution_id, status, start in LISTED:
        memory.save_execution_state(execution_id, state(execution_id, status=status, start_time=start))
    assert "".join(s.execution_id for s in memory.list_executions(**asked)) == found


@pytest.mark.parametrize("asked", [
    {"query": {"staus": "error"}}, {"order_by": "start"}, {"limit": -1}, {"offset": -1},
])  # fmt: skip
def test_what_cannot_be_listed_is_refused(
    memory: MemoryExecutionStorage, store: OpenedStore, asked: dict[str, Any]
) -> None:
    for storage in (memory, StoreExecutionStorage(store)):
        with pytest.raises(InputError):
            storage.list_executions(**asked)


def test_states_are_text_and_back(memory: MemoryExecutionStorage) -> None:
    assert memory.deserialize_state(memory.serialize_state({"a": "é"})) == {"a": "é"}
    with pytest.raises(InputError):
        memory.deserialize_state("[1]")
    with pytest.raises(TypeError):
        memory.serialize_state({"a": object()})
    assert memory.get_namespace_key("execution:e") == "plaita:execution:e"


class Own(ExecutionStorage):
    """A storage of one's own: what it does not write it inherits."""

    def save_execution_state(self, execution_id: str, state: ExecutionState) -> bool:
        return False

    def load_execution_state(self, execution_id: str) -> ExecutionState | None:
        return None

    def delete_execution_state(self, execution_id: str) -> bool:
        return False

    def list_executions(self, query: Any = None, order_by: str | None = None, limit: int = 100, offset: int = 0) -> Any:
        return []


def test_a_storage_of_ones_own_says_four_things() -> None:
    assert Own().load_execution_tombstone("e") is None
    assert ExecutionStorage.__abstractmethods__ == {
        "save_execution_state", "load_execution_state", "delete_execution_state", "list_executions",
    }  # fmt: skip
    assert FlowStorage.__abstractmethods__ == {"save_flow", "get_flow"}


@pytest.mark.parametrize(("versions", "asked", "got"), [
    (["2.0.0", "10.0.0"], None, "10.0.0"),
    (["2.0.0", "10.0.0"], "2.0.0", "2.0.0"),
    (["2.0.0", "10.0.0"], "9", "10.0.0"),
    (["2.0.0", None], "9", None),
    (["2.0.0", "latest"], None, "latest"),
    (["b", "a"], None, "a"),
    ([3], "3", 3),
])  # fmt: skip
def test_an_unknown_version_is_another_one(versions: list[Any], asked: str | None, got: Any) -> None:
    flows = MemoryFlowStorage()
    for version in versions:
        assert flows.save_flow({"flow_id": "f"} if version is None else {"flow_id": "f", "version": version})
    found = flows.get_flow("f", asked)
    assert found is not None and found.get("version") == got


def test_flows_are_kept_under_any_spelling_of_their_id() -> None:
    flows = MemoryFlowStorage()
    assert [flows.save_flow({key: key}) for key in ("flow_id", "flowId", "id", "name")] == [True, True, True, False]
    assert [flows.get_flow(key) is None for key in ("flow_id", "flowId", "id", "name")] == [False, False, False, True]


def test_published_flows_are_those_of_the_store(runtime: Runtime) -> None:
    flows = StoreFlowStorage(runtime)
    assert flows.save_flow(WAITS) and not flows.save_flow({"nodes": WAITS["nodes"]})
    assert flows.get_flow("news") == flows.get_flow("news", "9") == WAITS
    assert flows.get_flow("nobody") is None
    assert runtime.start("news", {"x": 1}).wait()["status"] == "suspended"
    with pytest.raises(FlowLoadError):
        flows.save_flow({"flow_id": "broken", "nodes": []})


def test_an_execution_of_the_store_is_shown_in_its_documented_state(runtime: Runtime) -> None:
    runtime.start(Flow.model_validate(WAITS), {"x": 1}, execution_id="e1").wait()
    found = StoreExecutionStorage(runtime).load_execution_state("e1")
    assert found is not None
    assert (found.flow_id, found.flow_version, found.status, found.tenant_id) == ("news", "1", "suspended", "default")
    assert found.start_time is not None and found.last_update_time is not None and found.end_time is None
    nodes = found.context["$NODE"]
    assert (nodes["a"], nodes["w"]["status"], found.context["$LAST_NODE"]) == (2, "pending", "w")
    assert found.context["$GLOBAL"] == {"flow_id": "news", "run_token": "e1"}
    assert found.timeline is not None and found.timeline["events"][0]["type"] == "submitted"
    assert found.timeline["dropped"] == 0


def test_the_state_of_a_stored_execution_goes_on_by_hand(runtime: Runtime) -> None:
    flow = Flow.model_validate(WAITS)
    runtime.start(flow, {"x": 1}, execution_id="e1").wait()
    found = StoreExecutionStorage(runtime).load_execution_state("e1")
    assert found is not None
    context = json.loads(json.dumps(found.context))
    context["$NODE"]["w"]["subscription_id"] = "s"
    answer = {"subscription_id": "s", "n": 1}
    step = FlowExecution().run_distributed(flow, saved_context=context, resume_type="event", resume_data=answer)
    step = FlowExecution().run_distributed(flow, saved_context=step["context"])
    assert step["is_end"] and step["result"]["n"] == 1


def test_a_completed_execution_shows_its_output(runtime: Runtime) -> None:
    runtime.start(Flow.model_validate(chain(ADD, flow_id="sum")), {"x": 1}, execution_id="e1").wait()
    found = StoreExecutionStorage(runtime).load_execution_state("e1")
    assert found is not None
    assert (found.status, found.output, found.context["$NODE"], found.context["$LAST_NODE"]) == (
        "completed", 2, {"end": 2}, "end",
    )  # fmt: skip


def test_a_failed_execution_shows_its_error_and_branch(runtime: Runtime) -> None:
    choose = {"id": "c", "type": "if", "condition": "$INPUT.x == 1", "next": "a", "else_next": "end"}
    fails = {"id": "a", "type": "assignment", "output": "$F.add($INPUT.x, 'text')"}
    flow = Flow.model_validate(chain(choose, fails, output="done", flow_id="sum", globalContext={"k": 1}))
    runtime.start(flow, {"x": 1}, execution_id="e1").wait()
    found = StoreExecutionStorage(runtime).load_execution_state("e1")
    assert found is not None and found.error is not None
    assert (found.status, found.error["failed_node"], found.context["$NODE"]) == (
        "error",
        "a",
        {"start": None, "c": "a"},
    )
    assert (found.context["$LAST_NODE"], found.context["$BRANCH"], found.context["$GLOBAL"]["k"]) == ("c", "a", 1)


def test_stored_executions_are_listed_and_deleted(runtime: Runtime) -> None:
    storage = StoreExecutionStorage(runtime)
    for number in range(3):
        runtime.start(Flow.model_validate(chain(ADD, flow_id="sum")), {"x": number}, execution_id=f"e{number}").wait()
    runtime.start(Flow.model_validate(WAITS), {"x": 1}, execution_id="w").wait()

    def listed(**asked: Any) -> list[str]:
        return [s.execution_id for s in storage.list_executions(**asked)]

    assert listed() == ["e0", "e1", "e2", "w"]
    assert listed(order_by="-start_time", limit=2, offset=1) == ["e2", "e1"]
    assert listed(query={"status": "completed", "flow_id": "sum"}) == ["e0", "e1", "e2"]
    assert storage.delete_execution_state("e0") and not storage.delete_execution_state("e0")
    assert storage.load_execution_state("e0") is None
    with pytest.raises(Conflict, match="suspended"):
        storage.delete_execution_state("w")
    with pytest.raises(InputError, match="cannot be asked for"):
        storage.list_executions({"context": {}})


class Asked:
    """The way to a real store, noting how many rows are read."""

    def __init__(self, backend: Backend) -> None:
        self._backend, self.rows = backend, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    async def runs(self, **wanted: Any) -> Any:
        views, cursor = await self._backend.runs(**wanted)
        self.rows += len(views)
        return views, cursor


@pytest.mark.parametrize(("order_by", "first"), [(None, "e000"), ("start_time", "e000"), ("-start_time", "e449")])
def test_a_page_in_order_of_the_start_does_not_read_the_whole_store(order_by: str | None, first: str) -> None:
    asked = Asked(MemoryBackend())
    with OpenedStore(lambda: asked) as store:
        for number in range(450):
            store.ask(lambda backend, run=f"e{number:03}": backend.submit(submission(run)))  # type: ignore[misc]
        page = StoreExecutionStorage(store).list_executions(order_by=order_by, limit=2)
        assert (page[0].execution_id, len(page)) == (first, 2)
    assert asked.rows <= 200


def test_an_execution_that_waits_elsewhere_is_taken_over_and_answered(runtime: Runtime) -> None:
    StoreFlowStorage(runtime).save_flow(WAITS)
    given = state("e1", flow_id="news", flow_version="1", context=suspended("e1"), status="suspended")
    assert StoreExecutionStorage(runtime).save_execution_state("e1", given)
    [wait] = runtime.execution("e1").inspect()["waits"]
    assert (wait["kind"], wait["node"], wait["event_type"]) == ("event", "w", "news")
    runtime.publish_event("news", {"n": 2})
    assert runtime.execution("e1").inspect()["status"] == "suspended", "its filter asks for another n"
    runtime.publish_event("news", {"n": 1, "text": "hi"})
    assert runtime.execution("e1").wait()["output"] == {"n": 1, "text": "hi"}
    assert runtime.ask(lambda backend: backend.audit()) == []


def test_a_wait_with_a_limit_is_taken_over_with_it(runtime: Runtime) -> None:
    document = chain(event("w", subscription_timeout=0.001), output="$NODE.w.status", flow_id="brief")
    StoreFlowStorage(runtime).save_flow(document)
    step = FlowExecution().run_distributed(Flow.model_validate(document), {}, execution_id="e1")
    step = FlowExecution().run_distributed(Flow.model_validate(document), saved_context=step["context"])
    context = {key: value for key, value in step["context"].items() if key != "$FRAMES"}
    given = state("e1", flow_id="brief", context=context, status="suspended")
    StoreExecutionStorage(runtime).save_execution_state("e1", given)
    assert runtime.execution("e1").wait()["output"] == "timeout"


def test_an_execution_under_way_elsewhere_goes_on_behind_its_last_node(runtime: Runtime) -> None:
    document = chain(
        {"id": "a", "type": "mock", "value": 1}, ADD | {"id": "b"}, output=["$NODE.a", "$NODE.b"], flow_id="f"
    )
    StoreFlowStorage(runtime).save_flow(document)
    context = {"$INPUT": {"x": 1}, "$NODE": {"start": None, "a": 7}, "$LAST_NODE": "a", "$BRANCH": None}
    StoreExecutionStorage(runtime).save_execution_state("e1", state("e1", flow_id="f", context=context))
    assert runtime.execution("e1").wait()["output"] == [7, 2]


def test_an_execution_that_failed_elsewhere_is_retried_at_its_failed_node(runtime: Runtime) -> None:
    document = chain(
        {"id": "a", "type": "mock", "value": 1}, ADD | {"id": "b"}, output=["$NODE.a", "$NODE.b"], flow_id="f"
    )
    StoreFlowStorage(runtime).save_flow(document)
    context = {"$INPUT": {"x": 1}, "$NODE": {"start": None, "a": 7}, "$LAST_NODE": "a"}
    error = {"message": "it broke", "code": 77, "error_type": "node_error", "failed_node": "b"}
    StoreExecutionStorage(runtime).save_execution_state(
        "e1", state("e1", flow_id="f", context=context, status="error", error=error)
    )
    found = StoreExecutionStorage(runtime).load_execution_state("e1")
    assert found is not None and found.error is not None
    assert (found.error["code"], found.error["failed_node"]) == (77, "b")
    assert runtime.execution("e1").retry()["output"] == [7, 2]


@pytest.mark.parametrize(("status", "output"), [("completed", 5), ("cancelled", None)])
def test_an_ended_execution_is_taken_over_without_its_flow(store: OpenedStore, status: str, output: Any) -> None:
    storage = StoreExecutionStorage(store)
    given = state("e1", flow_id="gone", status=status, context={"$INPUT": {}, "$NODE": {"end": 5}, "$LAST_NODE": "end"})
    storage.save_execution_state("e1", given)
    found = storage.load_execution_state("e1")
    assert found is not None and (found.status, found.output) == (status, output)
    assert store.ask(lambda backend: backend.audit()) == []


def test_only_a_free_id_is_taken_over(store: OpenedStore) -> None:
    storage = StoreExecutionStorage(store)
    given = state("e1", flow_id="gone", status="completed")
    storage.save_execution_state("e1", given)
    with pytest.raises(Conflict, match="exists"):
        storage.save_execution_state("e1", given)
    storage.delete_execution_state("e1")
    with pytest.raises(Conflict, match="was deleted"):
        storage.save_execution_state("e1", given)


@pytest.mark.parametrize(("fields", "error"), [
    ({"flow_id": "nobody"}, NotFound),
    ({}, InputError),
    ({"flow_id": "news", "status": "paused"}, InputError),
    ({"flow_id": "news", "status": "suspended"}, InputError),
    ({"flow_id": "news", "context": {"$LAST_NODE": "nobody"}}, InputError),
    ({"flow_id": "news", "context": {"$INPUT": object()}}, InputError),
])  # fmt: skip
def test_a_state_that_makes_no_sense_is_refused_and_leaves_nothing(
    store: OpenedStore, fields: dict[str, Any], error: type[Exception]
) -> None:
    StoreFlowStorage(store).save_flow(WAITS)
    with pytest.raises(error):
        StoreExecutionStorage(store).save_execution_state("e1", state("e1", **fields))
    assert StoreExecutionStorage(store).load_execution_state("e1") is None


def test_a_store_that_cannot_be_opened_leaves_no_thread_and_a_closed_one_says_so(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        OpenedStore(lambda: 1 / 0)  # type: ignore[arg-type,return-value]
    store = OpenedStore(lambda: SqliteBackend(tmp_path / "s.db"))
    store.close()
    store.close()
    with pytest.raises(RuntimeError, match="closed"):
        StoreExecutionStorage(store).load_execution_state("e")


def test_storages_are_made_by_name(tmp_path: Path) -> None:
    assert isinstance(create_storage_component("memory", "execution"), MemoryExecutionStorage)
    flows = create_storage_component("sqlite", "flow", path=tmp_path / "s.db")
    try:
        assert flows.save_flow(WAITS)
    finally:
        flows.close()
    for kind, component, error in (
        ("redis", "x", NotSupported),
        ("db", "flow", NotSupported),
        ("memory", "x", NotSupported),
    ):
        with pytest.raises(error):
            create_storage_component(kind, component)


def test_ended_executions_are_kept_as_long_as_the_setting_says() -> None:
    assert execution_state_ttl_seconds() % 86_400 == 0 < execution_state_ttl_seconds()
