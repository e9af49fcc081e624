"""One timer handle for whoever waits again and again until some time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    """Calls ``ring`` at the time that was set or earlier: a handle for every wait costs more than one more look."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._handle: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Ring in so many seconds at the latest."""
        loop = asyncio.get_running_loop()
        at = loop.time() + seconds
        if self._handle is not None:
            if self._handle.when() <= at:
                return
            self._handle.cancel()
        self._handle = loop.call_at(at, self._go_off)

    def cancel(self) -> None:
        """Do not ring any more."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _go_off(self) -> None:
        self._handle = None
        self._ring()
