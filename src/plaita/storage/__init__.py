"""Where executions and flows are kept: in memory, in a store, or wherever a subclass says."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plaita.storage.base import ExecutionState, ExecutionStorage, FlowStorage
from plaita.storage.memory import MemoryExecutionStorage, MemoryFlowStorage

if TYPE_CHECKING:
    from plaita.storage.bridge import OpenedStore
    from plaita.storage.redis import RedisExecutionStorage, RedisFlowStorage
    from plaita.storage.store import StoreExecutionStorage, StoreFlowStorage

__all__ = [
    "ExecutionState", "ExecutionStorage", "FlowStorage", "MemoryExecutionStorage", "MemoryFlowStorage", "OpenedStore",
    "RedisExecutionStorage", "RedisFlowStorage", "StoreExecutionStorage", "StoreFlowStorage",
]  # fmt: skip

_HOMES = {
    "OpenedStore": "bridge", "StoreExecutionStorage": "store", "StoreFlowStorage": "store",
    "RedisExecutionStorage": "redis", "RedisFlowStorage": "redis",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'plaita.storage' has no attribute {name!r}")
    return getattr(import_module(f"plaita.storage.{home}"), name)
