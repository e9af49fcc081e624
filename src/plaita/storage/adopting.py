"""From a documented state to what a store takes over."""

from __future__ import annotations

from plaita.base.errors import InputError
from plaita.core import taking_over
from plaita.core.taking_over import Brought
from plaita.ports.backend import Backend
from plaita.ports.runs import Adoption, Submission
from plaita.storage.base import ExecutionState


async def adoption_of(backend: Backend, state: ExecutionState) -> tuple[Submission, Adoption]:
    """How the execution is submitted, and the state it is put in. Its version is the latest when it names none."""
    brought = Brought(
        state.execution_id,
        _flow_id(state),
        state.flow_version or "",
        state.status,
        state.context,
        state.tenant_id or "default",
        state.error,
        state.output,
    )
    return await taking_over.adoption_of(backend, brought, await backend.flow(brought.flow_id, brought.version))


def _flow_id(state: ExecutionState) -> str:
    found = state.flow_id or state.context.get("$FLOW_ID")
    if not isinstance(found, str):
        raise InputError("flow_id", "the state names no flow")
    return found
