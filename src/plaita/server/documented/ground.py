"""Where a ``FlowWorker`` works: the store of a storage, or one of its own whose states a storage in memory shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from plaita.backends.memory import MemoryBackend
from plaita.core.closure import close_over
from plaita.core.fingerprint import FLOW_HASH_ALGO, compute_flow_definition_hash
from plaita.core.flow import Flow
from plaita.ports.backend import Backend
from plaita.server.documented.errors import FlowHashMismatchError, StorageForeign
from plaita.storage.base import ExecutionState, ExecutionStorage
from plaita.storage.bridge import Bridge, OpenedStore
from plaita.storage.memory import MemoryExecutionStorage
from plaita.storage.store import StoreExecutionStorage


class Definitions(Protocol):
    """Where a flow is found by id and version."""

    def get_flow_document(self, flow_id: str, version: str | None) -> tuple[Mapping[str, Any], Flow]:
        """The document as it was written, and the flow. Raises ``ExecutionUnknown``."""


class Ground:
    """A store that moves executions, and the states of those executions."""

    def __init__(self, bridge: Bridge, states: StoreExecutionStorage) -> None:
        self.bridge, self.states = bridge, states

    def bring(self, execution_id: str, definitions: Definitions) -> bool:
        """Make sure that the store knows the execution; is there one?"""
        return self.states.load_execution_state(execution_id) is not None

    def show(self, execution_id: str) -> ExecutionState:
        """Its state now, where programs look for it."""
        found = self.states.load_execution_state(execution_id)
        assert found is not None, "it was moved just now"
        return found


class MemoryGround(Ground):
    """States are in the storage; the store beside it knows those that were moved here."""

    def __init__(self, storage: MemoryExecutionStorage) -> None:
        bridge = OpenedStore(MemoryBackend)
        super().__init__(bridge, StoreExecutionStorage(bridge))
        self._storage = storage

    def bring(self, execution_id: str, definitions: Definitions) -> bool:
        state = self._storage.load_execution_state(execution_id)
        if state is None or super().bring(execution_id, definitions):
            return state is not None
        if state.flow_id is not None:
            document, flow = definitions.get_flow_document(state.flow_id, state.flow_version)
            _check_hash(state, document)
            version = state.flow_version or flow.version or ""
            self.bridge.ask(lambda store: _publish(store, flow, str(state.flow_id), version))
        return self.states.save_execution_state(execution_id, state)

    def show(self, execution_id: str) -> ExecutionState:
        state = super().show(execution_id)
        self._storage.save_execution_state(execution_id, state)
        return state


def ground_of(storage: ExecutionStorage) -> Ground:
    """The ground of a storage. Raises ``StorageForeign`` for one that is not ours."""
    if isinstance(storage, StoreExecutionStorage):
        return Ground(storage.store, storage)
    if isinstance(storage, MemoryExecutionStorage):
        return MemoryGround(storage)
    cls = type(storage)
    raise StorageForeign(
        f"a worker cannot move executions of {cls.__module__}.{cls.__qualname__}: it has no leases, waits and timers",
        "RedisExecutionStorage(…), StoreExecutionStorage(…) or MemoryExecutionStorage(); with states of one's own, "
        "FlowExecution.run_distributed moves them step by step",
    )


def _check_hash(state: ExecutionState, document: Mapping[str, Any]) -> None:
    if state.flow_hash is None or state.flow_hash_algo != FLOW_HASH_ALGO:
        return
    if compute_flow_definition_hash(document) != state.flow_hash:
        raise FlowHashMismatchError(
            f"flow {state.flow_id!r} is not the definition with which execution {state.execution_id!r} began",
            "publish the definition again under its version",
        )


async def _publish(store: Backend, flow: Flow, flow_id: str, version: str) -> None:
    closure, document = close_over(flow)
    await store.put_closure(closure, document)
    await store.publish_flow(flow_id, version or closure[:8], closure)
