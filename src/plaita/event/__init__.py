"""Events in this process: a bus, its storages, and the bus of the process."""

from __future__ import annotations

import threading
from typing import Any

from plaita.base.errors import EventError, EventNotFoundError, EventStorageError, EventTimeoutError
from plaita.base.moved import from_homes
from plaita.event.core import (
    Event,
    EventBus,
    EventHandler,
    EventStorage,
    EventSubscription,
    EventSubscriptionStorage,
    RetryPolicy,
    event_handler,
    normalize_event,
)
from plaita.event.memory import InMemoryEventBus, InMemoryEventSubscriptionStorage, MemoryEventStorage
from plaita.node.event_node import EventNode

__all__ = [
    "Event", "EventBus", "EventError", "EventHandler", "EventNode", "EventNotFoundError", "EventStorage",
    "EventStorageError", "EventSubscription", "EventSubscriptionStorage", "EventTimeoutError", "InMemoryEventBus",
    "InMemoryEventSubscriptionStorage", "MemoryEventStorage", "RetryPolicy", "event_handler", "get_default_event_bus",
    "normalize_event", "set_default_event_bus",
]  # fmt: skip

__getattr__: Any = from_homes("plaita.event", {"plaita.event.redis": ("RedisEventBus",)})

_default: list[EventBus] = []
_lock = threading.Lock()


def get_default_event_bus() -> EventBus:
    """The bus of this process; an ``InMemoryEventBus`` unless another one was set."""
    with _lock:
        if not _default:
            _default.append(InMemoryEventBus())
        return _default[0]


def set_default_event_bus(event_bus: EventBus) -> None:
    """From now on this is the bus of this process."""
    with _lock:
        _default[:] = [event_bus]
