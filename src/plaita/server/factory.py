"""Storages by their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from plaita.backends.sqlite import SqliteBackend
from plaita.base.absent import REDIS
from plaita.base.errors import NotInRelease, NotSupported
from plaita.event.memory import InMemoryEventBus, InMemoryEventSubscriptionStorage, MemoryEventStorage
from plaita.storage.bridge import OpenedStore
from plaita.storage.memory import MemoryExecutionStorage, MemoryFlowStorage
from plaita.storage.redis import RedisExecutionStorage, RedisFlowStorage
from plaita.storage.store import StoreExecutionStorage, StoreFlowStorage

_MEMORY: dict[str, Callable[..., Any]] = {
    "execution": MemoryExecutionStorage,
    "flow": MemoryFlowStorage,
    "event": InMemoryEventBus,
    "event_storage": MemoryEventStorage,
    "subscription": InMemoryEventSubscriptionStorage,
}
_STORE: dict[str, Callable[..., Any]] = {"execution": StoreExecutionStorage, "flow": StoreFlowStorage}
_REDIS: dict[str, Callable[..., Any]] = {"execution": RedisExecutionStorage, "flow": RedisFlowStorage}


def create_storage_component(storage_type: str, component_type: str, **kwargs: Any) -> Any:
    """A storage of a kind: ``memory``; ``sqlite`` with ``path``, or ``redis`` (``execution`` and ``flow`` only).

    ``component_type`` is ``execution``, ``flow``, ``event`` (a bus), ``event_storage`` or ``subscription``. Raises
    ``NotInRelease`` for ``redis`` and ``NotSupported`` for any other kind.
    """
    known = {"memory": _MEMORY, "sqlite": _STORE, "redis": _REDIS}.get(storage_type)
    if known is None:
        raise NotSupported(f"there is no storage type {storage_type!r}", "types: memory, sqlite, redis")
    if storage_type == "redis" and component_type in _MEMORY.keys() - known.keys():
        raise NotInRelease(f"{component_type!r} on redis is not available in this release: {REDIS[0]}", REDIS[1])
    if component_type not in known:
        raise NotSupported(f"{storage_type!r} has no {component_type!r}", f"it has: {', '.join(known)}")
    if storage_type != "sqlite":
        return known[component_type](**kwargs)
    if set(kwargs) != {"path"}:
        given = ", ".join(sorted(kwargs)) or "nothing"
        raise NotSupported(f"a storage of type 'sqlite' takes path, not {given}", "path names the file of the store")
    path = Path(kwargs["path"])
    return _STORE[component_type](OpenedStore(lambda: SqliteBackend(path)))
