"""Storages by their names."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from plaita.backends.sqlite import SqliteBackend
from plaita.base.errors import NotSupported
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
_REDIS: dict[str, Callable[..., Any]] = {
    "execution": RedisExecutionStorage,
    "flow": RedisFlowStorage,
    "event": lambda **given: _on_redis("RedisEventBus", given),
    "event_storage": lambda **given: _on_redis("RedisEventStorage", given),
    "subscription": lambda **given: _on_redis("RedisEventSubscriptionStorage", given),
}


def create_storage_component(storage_type: str, component_type: str, **kwargs: Any) -> Any:
    """A storage of a kind: ``memory``; ``sqlite`` with ``path`` (``execution`` and ``flow`` only); or ``redis``.

    ``component_type`` is ``execution``, ``flow``, ``event`` (a bus), ``event_storage`` or ``subscription``; on Redis
    the last three take ``redis_url``. Raises ``NotSupported`` for any other kind.
    """
    known = {"memory": _MEMORY, "sqlite": _STORE, "redis": _REDIS}.get(storage_type)
    if known is None:
        raise NotSupported(f"there is no storage type {storage_type!r}", "types: memory, sqlite, redis")
    if component_type not in known:
        raise NotSupported(f"{storage_type!r} has no {component_type!r}", f"it has: {', '.join(known)}")
    if storage_type != "sqlite":
        return known[component_type](**kwargs)
    if set(kwargs) != {"path"}:
        given = ", ".join(sorted(kwargs)) or "nothing"
        raise NotSupported(f"a storage of type 'sqlite' takes path, not {given}", "path names the file of the store")
    path = Path(kwargs["path"])
    return _STORE[component_type](OpenedStore(lambda: SqliteBackend(path)))


def _on_redis(name: str, given: dict[str, Any]) -> Any:
    return getattr(import_module("plaita.event.redis"), name)(**given)
