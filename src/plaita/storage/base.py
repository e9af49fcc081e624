"""What a storage of executions and of flows is, and the state of one execution; to subclass for one's own."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from pydantic import BaseModel, ConfigDict

from plaita.base.errors import InputError
from plaita.base.json import parse
from plaita.base.spelling import suggest
from plaita.base.tenancy import current_tenant, tenant_namespace


class ExecutionState(BaseModel):
    """One execution as it is kept. Times are ISO 8601; ``context`` is the documented checkpoint.

    ``status`` is ``running``, ``suspended``, ``completed``, ``error`` or ``cancelled``; over a store also ``queued``.
    ``error`` has ``message``, ``code``, ``error_type`` and ``failed_node``. ``output`` is what a completed execution
    gave.
    """

    model_config = ConfigDict(extra="ignore", defer_build=True)

    execution_id: str
    flow_id: str | None = None
    flow_name: str | None = None
    flow_version: str | None = None
    flow_hash: str | None = None
    flow_hash_algo: str | None = None
    engine_version: str | None = None
    tenant_id: str | None = None
    context: dict[str, Any]
    status: str = "running"
    start_time: str | None = None
    last_update_time: str | None = None
    end_time: str | None = None
    error: dict[str, Any] | None = None
    invoker: str | None = None
    node_timings: dict[str, Any] | None = None
    timeline: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    dispatch_pending: dict[str, Any] | None = None
    output: Any = None


class ExecutionStorage(ABC):
    """Keeps the states of executions."""

    @abstractmethod
    def save_execution_state(self, execution_id: str, state: ExecutionState) -> bool:
        """Keep a state. ``False``: not now, trying again may help; raises when it never will."""

    @abstractmethod
    def load_execution_state(self, execution_id: str) -> ExecutionState | None:
        """The state; ``None`` when there is none. Raises when it cannot be read."""

    @abstractmethod
    def delete_execution_state(self, execution_id: str) -> bool:
        """Remove it; was there one?"""

    @abstractmethod
    def list_executions(
        self, query: Mapping[str, Any] | None = None, order_by: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[ExecutionState]:
        """States whose fields equal those of ``query``, ordered by a field (``-start_time``: descending)."""

    def load_execution_tombstone(self, execution_id: str) -> dict[str, Any] | None:
        """What is known of a deleted execution: ``tenant``, ``deleted_at`` (seconds since 1970), ``reason``."""
        return None

    def get_namespace_key(self, key: str) -> str:
        """A documented key of the current tenant."""
        return f"{tenant_namespace(current_tenant())}:{key}"

    def serialize_state(self, state: Mapping[str, Any]) -> str:
        """JSON text. Raises ``TypeError`` for what is not JSON."""
        return json.dumps(state)

    def deserialize_state(self, data: str) -> dict[str, Any]:
        """The object in JSON text. Raises ``InputError`` for anything else."""
        found = parse(data, "the state")
        if not isinstance(found, dict):
            raise InputError("the state", f"is an object, not {type(found).__name__}")
        return found


class FlowStorage(ABC):
    """Keeps flow documents."""

    @abstractmethod
    def save_flow(self, flow: dict[str, Any]) -> bool:
        """Keep a document under its ``flow_id`` and ``version``; ``False`` when it has no id."""

    @abstractmethod
    def get_flow(self, flow_id: str, version: str | None = None) -> dict[str, Any] | None:
        """A document; another version when that one is unknown, ``None`` when the flow is."""


def page_of(
    states: Iterable[ExecutionState], query: Mapping[str, Any] | None, order_by: str | None, limit: int, offset: int
) -> list[ExecutionState]:
    """What ``list_executions`` answers. Raises ``InputError`` for a field no state has and for negative numbers."""
    check_page(limit, offset)
    wanted = dict(query or {})
    for name in wanted:
        check_field(name, "query")
    found = [s for s in states if has_values(s, wanted)]
    return (ordered(found, order_by) if order_by else found)[offset : offset + limit]


def has_values(state: ExecutionState, wanted: Mapping[str, Any]) -> bool:
    """Do the fields of a state equal these?"""
    return all(getattr(state, name) == value for name, value in wanted.items())


def ordered(states: Iterable[ExecutionState], order_by: str) -> list[ExecutionState]:
    """States by a field (``-start_time``: descending); those without it stand first. Raises ``InputError``."""
    name = order_by.removeprefix("-")
    check_field(name, "order_by")
    read = attrgetter(name)

    def key(state: ExecutionState) -> tuple[bool, str]:
        value = read(state)
        return value is not None, "" if value is None else str(value)

    return sorted(states, key=key, reverse=order_by.startswith("-"))


def check_page(limit: int, offset: int) -> None:
    """Raises ``InputError`` for a negative number."""
    if limit < 0 or offset < 0:
        raise InputError("limit" if limit < 0 else "offset", "must not be negative")


def check_owner(execution_id: str, state: ExecutionState) -> None:
    """Raises ``InputError`` for the state of another execution."""
    if state.execution_id != execution_id:
        raise InputError("execution_id", f"the state is of {state.execution_id!r}, not of {execution_id!r}")


def check_field(name: str, where: str) -> None:
    """Raises ``InputError`` for a name that is no field of a state."""
    if name not in ExecutionState.model_fields:
        hint = suggest(name, ExecutionState.model_fields) or "fields: " + ", ".join(ExecutionState.model_fields)
        raise InputError(where, f"{name!r} is no field of an execution; {hint}")
