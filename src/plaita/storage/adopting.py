"""From a documented state to what a store takes over."""

from __future__ import annotations

from plaita.base.errors import InputError, NotFound
from plaita.base.ids import start_digest
from plaita.base.json import Json, encode
from plaita.core.closure import open_closure
from plaita.core.saved import Kept, kept_run
from plaita.engine.program import Program
from plaita.ports.backend import Backend
from plaita.ports.flows import FlowVersion
from plaita.ports.runs import Adoption, End, Park, Submission
from plaita.ports.values import RunId
from plaita.storage.base import ExecutionState


async def adoption_of(backend: Backend, state: ExecutionState) -> tuple[Submission, Adoption]:
    """How the execution is submitted, and the state it is put in."""
    found = await _published(backend, state)
    closure = "" if found is None else found.closure
    given = encode(state.context.get("$INPUT"))
    start = Submission(
        RunId(state.execution_id),
        start_digest(closure, given),
        given,
        _flow_id(state),
        closure,
        "" if found is None else found.version,
        tenant=state.tenant_id or "default",
    )
    if state.status == "completed":
        return start, Adoption({}, End("completed", output=encode(_output(state))))
    if state.status == "cancelled":
        return start, Adoption({}, End("cancelled"))
    if state.status not in ("running", "suspended", "error"):
        raise InputError("status", f"{state.status!r} is not a status that can be taken over")
    if found is None:
        what = f"flow {_flow_id(state)!r}"
        raise NotFound(f"{what} of execution {state.execution_id!r} is not published here", "publish it first")
    kept = kept_run(await _program(backend, found), state.context, await backend.now_ms())
    return start, _under_way(state, kept, await backend.now_ms())


def _under_way(state: ExecutionState, kept: Kept, now_ms: int) -> Adoption:
    if state.status == "error":
        return Adoption(kept.frames, End("error", error=encode(_failure(state))))
    if state.status == "suspended" and not kept.arms:
        raise InputError("status", "the state says suspended, but its context has no pending node")
    return Adoption(kept.frames, Park(kept.due_ms if kept.arms else now_ms), kept.arms)


def _flow_id(state: ExecutionState) -> str:
    found = state.flow_id or state.context.get("$FLOW_ID")
    if not isinstance(found, str):
        raise InputError("flow_id", "the state names no flow")
    return found


async def _published(backend: Backend, state: ExecutionState) -> FlowVersion | None:
    """The version the state names, or the latest when it names none."""
    return await backend.flow(_flow_id(state), state.flow_version or "")


async def _program(backend: Backend, found: FlowVersion) -> Program:
    document = await backend.closure(found.closure)
    if document is None:
        raise NotFound(f"the definition of flow {found.flow_id!r} is missing in {backend.name}", "publish it again")
    return open_closure(document).program


def _output(state: ExecutionState) -> Json:
    last = state.context.get("$LAST_NODE")
    return state.output if state.output is not None else (state.context.get("$NODE") or {}).get(last)


def _failure(state: ExecutionState) -> dict[str, Json]:
    """The error in the shape that the store keeps."""
    error = state.error or {}
    node = error.get("failed_node")
    return {
        "kind": error.get("kind") or "node_error",
        "code": error.get("code", -500),
        "message": error.get("message") or "the execution failed elsewhere",
        "error_type": error.get("error_type") or "flow_error",
        "path": error.get("path") or ([] if node is None else [node]),
    }
