"""Events and subscriptions on Redis under the documented keys, for programs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from plaita.base.errors import NotSupported
from plaita.base.moved import from_homes

if TYPE_CHECKING:
    from plaita.event.redis_bus import RedisEventBus
    from plaita.event.redis_events import RedisEventStorage
    from plaita.event.redis_subscriptions import RedisEventSubscriptionStorage

__all__ = [
    "DEFAULT_EVENT_KEY_PREFIX", "DEFAULT_EVENT_TTL_SECONDS", "RedisEventBus", "RedisEventStorage",
    "RedisEventSubscriptionStorage", "event_retention_ttl_seconds",
]  # fmt: skip

DEFAULT_EVENT_KEY_PREFIX: Final = "plaita:event:"
DEFAULT_EVENT_TTL_SECONDS: Final = 604_800
_HOMES: Final = {
    "plaita.event.redis_bus": ("RedisEventBus",),
    "plaita.event.redis_events": ("RedisEventStorage",),
    "plaita.event.redis_subscriptions": ("RedisEventSubscriptionStorage",),
}
_lookup = from_homes("plaita.event.redis", _HOMES)


def __getattr__(name: str) -> Any:
    try:
        return _lookup(name)
    except ModuleNotFoundError as e:
        if e.name not in ("redis", "hiredis"):
            raise
        raise NotSupported("events on Redis need the client library", "pip install 'plaita[redis]'") from None


def event_retention_ttl_seconds() -> int:
    """How long an event is kept, ``PLAITA_EVENT_TTL_SECONDS``."""
    seconds: int = import_module("plaita.settings").current_settings().events.ttl_seconds
    return seconds
