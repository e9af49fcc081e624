"""A worker fires timers itself, as part of its store; there is no service beside it."""

from __future__ import annotations

from plaita.base.absent import TIMERS, absent

__getattr__ = absent("plaita.server.services.delay_service", DelayService=TIMERS)
