"""Here a worker fires timers itself; the service of the Redis fleet comes later."""

from __future__ import annotations

from plaita.base.absent import REDIS, absent

__getattr__ = absent("plaita.server.services.delay_service", DelayService=REDIS)
