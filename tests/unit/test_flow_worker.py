"""``FlowWorker`` in a program, with storages in memory: what a step, a refusal and an end look like."""

from __future__ import annotations

from typing import Any

import pytest

from plaita.base.errors import ErrorResultException, InputError, NotSupported, ResumeError
from plaita.core.callback import FlowCallback
from plaita.server.execution_lease import ExecutionLeaseError
from plaita.server.flow_worker import (
    ExecutionIdConflictError,
    FlowHashMismatchError,
    FlowWorker,
    NodeFailureTerminalizedError,
    ResumeProtocolError,
    canonical_flow_definition_json,
    classify_flow_hash_change,
    compute_flow_definition_hash,
)
from plaita.server.tenant_context import reset_current_tenant, set_current_tenant
from plaita.storage import ExecutionState, ExecutionStorage, MemoryExecutionStorage, MemoryFlowStorage

STEP = {"id", "type", "name", "result", "branch", "is_end", "is_suspend", "execution_id", "context"}
SUM = {
    "flow_id": "sum", "version": "1",
    "nodes": [
        {"id": "s", "type": "start", "next": "e"},
        {"id": "e", "type": "end", "output": {"x": "$INPUT.x"}},
    ],
}  # fmt: skip
WAITS = {
    "flow_id": "waits", "version": "1",
    "nodes": [
        {"id": "s", "type": "start", "next": "a"},
        {"id": "a", "type": "event", "event_type": "go", "next": "e"},
        {"id": "e", "type": "end", "output": "$NODE.a.event_data"},
    ],
}  # fmt: skip
FAILS = {
    "flow_id": "fails", "version": "1",
    "nodes": [
        {"id": "s", "type": "start", "next": "e"},
        {"id": "e", "type": "end", "resultType": "error", "error": {"code": 7, "message": "nope"}},
    ],
}  # fmt: skip


@pytest.fixture
def executions() -> MemoryExecutionStorage:
    return MemoryExecutionStorage()


@pytest.fixture
def flows() -> MemoryFlowStorage:
    storage = MemoryFlowStorage()
    for flow in (SUM, WAITS, FAILS):
        storage.save_flow(flow)
    return storage


@pytest.fixture
def worker(executions: MemoryExecutionStorage, flows: MemoryFlowStorage) -> FlowWorker:
    return FlowWorker(executions, flows)


def subscription(executions: MemoryExecutionStorage, execution_id: str) -> str:
    state = executions.load_execution_state(execution_id)
    assert state is not None
    found: str = state.context["$NODE"]["a"]["subscription_id"]
    return found


def answer(subscription_id: str) -> dict[str, Any]:
    return {"event_type": "go", "event_data": {"k": 1}, "subscription_id": subscription_id}


def test_a_flow_that_ends_gives_its_last_step(worker: FlowWorker, executions: MemoryExecutionStorage) -> None:
    step = worker.start_flow("sum", {"x": 1}, "1")
    assert step.keys() == STEP
    assert (step["id"], step["type"], step["result"], step["is_end"]) == ("e", "end", {"x": 1}, True)
    state = executions.load_execution_state(step["execution_id"])
    assert state is not None
    assert (state.status, state.flow_version) == ("completed", "1")


def test_a_flow_that_waits_is_suspended_until_its_event(worker: FlowWorker, executions: MemoryExecutionStorage) -> None:
    step = worker.start_flow("waits", {}, execution_id="w")
    assert (step["id"], step["is_suspend"], step["result"]["status"]) == ("a", True, "pending")
    again = worker.resume_flow("waits", "w", "continue")
    assert again == {"execution_id": "w", "status": "suspended", "already_suspended": True}
    ended = worker.resume_flow("waits", "w", "event", answer(subscription(executions, "w")))
    assert (ended["result"], ended["is_end"]) == ({"k": 1}, True)
    late = worker.resume_flow("waits", "w", "event", answer("@a#1"))
    assert (late["already_terminal"], late["status"], late["result"]) == (True, "completed", {"k": 1})


@pytest.mark.parametrize("data", [None, {"event_data": 1}, answer("wrong"), {**answer("@a#1"), "event_type": "stop"}])
def test_an_answer_that_is_not_meant_for_it_changes_nothing(
    worker: FlowWorker, executions: MemoryExecutionStorage, data: dict[str, Any] | None
) -> None:
    worker.start_flow("waits", {}, execution_id="w")
    with pytest.raises(ResumeProtocolError, match="waits on"):
        worker.resume_flow("waits", "w", "event", data)
    assert worker.resume_flow("waits", "w", "event", answer("@a#1"))["is_end"]


def test_what_makes_no_sense_is_refused_by_name(worker: FlowWorker) -> None:
    worker.start_flow("waits", {}, execution_id="w")
    with pytest.raises(InputError, match="of flow 'waits', not of 'sum'"):
        worker.resume_flow("sum", "w", "continue")
    with pytest.raises(ResumeError, match="none of continue, retry, cancel, timeout, event"):
        worker.resume_flow("waits", "w", "bogus")
    with pytest.raises(ValueError, match="no execution 'nobody'"):
        worker.resume_flow("waits", "nobody", "continue")
    with pytest.raises(ValueError, match="no flow 'nothing'"):
        worker.start_flow("nothing", {})
    with pytest.raises(ExecutionIdConflictError):
        worker.start_flow("sum", {}, execution_id="w")
    with pytest.raises(ResumeProtocolError, match="no deadline"):
        worker.resume_flow("waits", "w", "timeout", answer("@a#1"))


def test_a_start_of_an_id_that_exists_starts_nothing(worker: FlowWorker) -> None:
    worker.start_flow("waits", {}, execution_id="w")
    assert worker.start_flow("waits", {}, execution_id="w")["already_suspended"]
    first = worker.start_flow("sum", {"x": 1}, dedup_key="k")
    second = worker.start_flow("sum", {"x": 1}, dedup_key="k")
    assert (second["execution_id"], second["already_terminal"]) == (first["execution_id"], True)


def test_a_cancelled_execution_has_ended(worker: FlowWorker, executions: MemoryExecutionStorage) -> None:
    worker.start_flow("waits", {}, execution_id="w")
    assert worker.resume_flow("waits", "w", "cancel")["status"] == "cancelled"
    state = executions.load_execution_state("w")
    assert state is not None
    assert state.status == "cancelled"


def test_an_error_is_raised_and_may_be_retried(worker: FlowWorker, executions: MemoryExecutionStorage) -> None:
    with pytest.raises(NodeFailureTerminalizedError, match="nope") as failed:
        worker.start_flow("fails", {}, execution_id="f")
    assert isinstance(failed.value.__cause__, ErrorResultException)
    assert failed.value.__cause__.code == 7
    assert worker.resume_flow("fails", "f", "continue")["already_terminal"]
    with pytest.raises(RuntimeError):
        worker.resume_flow("fails", "f", "retry")
    state = executions.load_execution_state("f")
    assert state is not None
    assert state.status == "error"


def test_definitions_are_cached_by_tenant_flow_and_version(worker: FlowWorker) -> None:
    assert worker.get_flow_definition("sum", "1") is worker.get_flow_definition("sum", "1")
    token = set_current_tenant("acme")
    try:
        worker.get_flow_definition("sum")
    finally:
        reset_current_tenant(token)
    assert set(worker.flow_definition_cache) == {"default:sum:1", "acme:sum:latest"}
    assert worker.get_flow_definition_hash("sum") == compute_flow_definition_hash(SUM)


def test_a_saved_state_is_taken_up(worker: FlowWorker, executions: MemoryExecutionStorage) -> None:
    other = MemoryExecutionStorage()
    FlowWorker(other, worker.flow_storage).start_flow("waits", {"n": 1}, execution_id="w")
    state = other.load_execution_state("w")
    assert state is not None
    executions.save_execution_state("w", state)
    assert worker.resume_flow("waits", "w", "event", answer(subscription(executions, "w")))["is_end"]


def test_a_state_of_another_definition_is_refused(worker: FlowWorker, executions: MemoryExecutionStorage) -> None:
    context = {"$INPUT": {}, "$NODE": {"s": None}, "$LAST_NODE": "s", "$FLOW_ID": "sum"}
    state = ExecutionState(
        execution_id="w", flow_id="sum", flow_version="1", context=context, flow_hash="0" * 64,
        flow_hash_algo="flow-definition-json-sortkeys-v2",
    )  # fmt: skip
    executions.save_execution_state("w", state)
    with pytest.raises(FlowHashMismatchError, match="not the definition"):
        worker.resume_flow("sum", "w", "continue")


def test_a_storage_of_somebody_else_is_refused_by_name() -> None:
    class Mine(ExecutionStorage):
        def save_execution_state(self, execution_id: str, state: ExecutionState) -> bool:
            return True

        def load_execution_state(self, execution_id: str) -> ExecutionState | None:
            return None

        def delete_execution_state(self, execution_id: str) -> bool:
            return True

        def list_executions(self, *_: Any, **__: Any) -> list[ExecutionState]:
            return []

    with pytest.raises(NotSupported, match="Mine"):
        FlowWorker(Mine(), MemoryFlowStorage())


def test_a_lease_of_the_program_keeps_others_out(executions: MemoryExecutionStorage, flows: MemoryFlowStorage) -> None:
    class Held:
        def try_acquire(self, execution_id: str, holder: str, ttl_seconds: int) -> bool:
            return False

        def renew(self, execution_id: str, holder: str, ttl_seconds: int) -> bool:
            return False

        def release(self, execution_id: str, holder: str) -> bool:
            return False

    FlowWorker(executions, flows).start_flow("waits", {}, execution_id="w")
    with pytest.raises(ExecutionLeaseError):
        FlowWorker(executions, flows, execution_lease=Held()).resume_flow("waits", "w", "cancel")


def test_callbacks_are_told(executions: MemoryExecutionStorage, flows: MemoryFlowStorage) -> None:
    ends: list[Any] = []

    class Told(FlowCallback):
        def on_flow_end(self, *told: Any, **_: Any) -> None:
            ends.append(told)

    FlowWorker(executions, flows, callback_handlers=[Told()]).start_flow("sum", {"x": 1})
    assert len(ends) == 1


def test_the_fingerprint_of_a_definition_is_the_documented_one() -> None:
    assert canonical_flow_definition_json({"b": 1, "a": "é"}) == '{"a":"é","b":1}'
    wanted = "aa58fba8483623bed37c1b02edfccbdd9a53123837c20bfa4cb4049993a2872e"
    assert compute_flow_definition_hash({"b": 1, "a": "é"}) == wanted


@pytest.mark.parametrize(
    ("stored", "rule", "allowed", "verdict"),
    [
        (None, None, False, "no_guard"),
        ("x", "two", False, "match"),
        ("x", "one", False, "refresh"),
        ("y", "two", True, "mismatch"),
        ("y", "one", False, "mismatch"),
        ("y", "one", True, "accepted"),
        ("y", None, True, "mismatch"),
    ],
)
def test_a_change_of_a_definition_is_judged(stored: str | None, rule: str | None, allowed: bool, verdict: str) -> None:
    found = classify_flow_hash_change(
        stored_hash=stored, current_hash="x", stored_algo=rule, current_algo="two", allow_change=allowed
    )
    assert found == verdict
