"""Storages that live as long as the process. Safe to use from several threads; what goes in and out is a copy."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from plaita.base.clock import SystemClock
from plaita.base.json import admit
from plaita.base.tenancy import current_tenant
from plaita.engine.values import copied
from plaita.storage.base import ExecutionState, ExecutionStorage, FlowStorage, check_owner, page_of

TOMBSTONES_MAX = 10_000
LATEST = "latest"


class MemoryExecutionStorage(ExecutionStorage):
    """States of executions in memory; of the deleted ones the last 10,000 are remembered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: dict[str, dict[str, Any]] = {}
        self._tombstones: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def save_execution_state(self, execution_id: str, state: ExecutionState) -> bool:
        """Keep a state. Raises ``InputError`` for a state of another execution and for what is not JSON."""
        check_owner(execution_id, state)
        fields = {name: getattr(state, name) for name in ExecutionState.model_fields}
        kept = admit(fields, "state")
        with self._lock:
            self._states[execution_id] = kept
            self._tombstones.pop(execution_id, None)
        return True

    def load_execution_state(self, execution_id: str) -> ExecutionState | None:
        with self._lock:
            found = self._states.get(execution_id)
        return None if found is None else ExecutionState(**copied(found))

    def delete_execution_state(self, execution_id: str) -> bool:
        seconds = SystemClock().now_ms() / 1000
        with self._lock:
            if self._states.pop(execution_id, None) is None:
                return False
            tombstone = {"tenant": current_tenant(), "deleted_at": seconds, "reason": "execution_deleted"}
            self._tombstones[execution_id] = tombstone
            if len(self._tombstones) > TOMBSTONES_MAX:
                self._tombstones.popitem(last=False)
        return True

    def list_executions(
        self, query: Mapping[str, Any] | None = None, order_by: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[ExecutionState]:
        with self._lock:
            kept = list(self._states.values())
        return page_of((ExecutionState(**copied(state)) for state in kept), query, order_by, limit, offset)

    def load_execution_tombstone(self, execution_id: str) -> dict[str, Any] | None:
        with self._lock:
            found = self._tombstones.get(execution_id)
        return None if found is None else dict(found)


class MemoryFlowStorage(FlowStorage):
    """Flow documents in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flows: dict[str, dict[str, dict[str, Any]]] = {}

    def save_flow(self, flow: dict[str, Any]) -> bool:
        """Keep a document; one without a version is the latest. Raises ``InputError`` for what is not JSON."""
        kept = admit(flow, "flow")
        flow_id = id_of(kept)
        if flow_id is None:
            return False
        version = kept.get("version")
        with self._lock:
            self._flows.setdefault(flow_id, {})[LATEST if version is None else str(version)] = kept
        return True

    def get_flow(self, flow_id: str, version: str | None = None) -> dict[str, Any] | None:
        """That version; else ``latest``, else the highest number, else the one that was saved last."""
        with self._lock:
            versions = dict(self._flows.get(flow_id, {}))
        if not versions:
            return None
        chosen = LATEST if version is None else str(version)
        if chosen not in versions:
            chosen = LATEST if LATEST in versions else _highest(list(versions))
        found: dict[str, Any] = copied(versions[chosen])
        return found


def id_of(flow: Mapping[str, Any]) -> str | None:
    """The id of a flow document under any of its spellings."""
    found = next((flow[key] for key in ("flow_id", "flowId", "id") if flow.get(key) is not None), None)
    return None if found is None else str(found)


def _highest(versions: list[str]) -> str:
    numbered = [v for v in versions if all(part.isdecimal() for part in v.split("."))]
    if not numbered:
        return versions[-1]
    return max(numbered, key=lambda v: [int(part) for part in v.split(".")])
