"""What an attempt waits for: news, or a time."""

from __future__ import annotations

import asyncio


class Bell:
    """Rung by whoever has news, and by its own timer; one task waits for it.

    The timer rings at the time that was set or earlier: a handle for every wait costs more than one more look.
    """

    def __init__(self) -> None:
        self._rung = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_rung(self) -> bool:
        """There is news that nobody has waited for yet."""
        return self._rung

    def ring(self) -> None:
        """There is news."""
        self._rung = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self, seconds: float | None) -> None:
        """Until it rings, and so many seconds at most."""
        if seconds is not None:
            self._set(seconds)
        if not self._rung:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self._rung = False

    def close(self) -> None:
        """Let the timer go."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + seconds
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = loop.call_at(at, self._go_off)

    def _go_off(self) -> None:
        self._timer = None
        self.ring()
