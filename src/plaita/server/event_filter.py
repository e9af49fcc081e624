"""Here the store itself wakes who waits for an event; the service of the Redis fleet comes later."""

from __future__ import annotations

from plaita.base.absent import REDIS, absent

__getattr__ = absent("plaita.server.event_filter", EventFilter=REDIS)
