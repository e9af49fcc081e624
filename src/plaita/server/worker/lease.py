"""Keeping leases: the local view of a lease, and the renewal beside the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from plaita.base.clock import Clock
from plaita.base.errors import Unavailable
from plaita.ports.runs import Lost, Renewed, RunStore
from plaita.ports.values import RunId, Token
from plaita.server.worker.pool import Spawner
from plaita.telemetry import events
from plaita.telemetry.sink import Telemetry


@dataclass(slots=True)
class LocalLease:
    """Until when calls may begin, on a clock that runs during sleep. Counts from the send of the request."""

    until: float

    def valid(self, clock: Clock) -> bool:
        return clock.elapsed_ms() < self.until


class StoreTime:
    """The store's time, carried forward on the local clock between its answers; it never goes back.

    ``awake`` gives seconds that do not go on while the machine sleeps.
    """

    def __init__(self, clock: Clock, now_ms: int, awake: Callable[[], float]) -> None:
        self._clock, self._heard, self._at = clock, now_ms, clock.elapsed_ms()
        self._awake, self._leapt = awake, 0
        self._slept = self._asleep()

    def now(self) -> int:
        """Milliseconds since 1970."""
        return int(self._heard + self._clock.elapsed_ms() - self._at)

    def hear(self, now_ms: int) -> None:
        """An answer said what time it is."""
        at = self._clock.elapsed_ms()
        now = int(self._heard + at - self._at)
        self._leapt += max(0, now_ms - now)
        self._heard, self._at = max(now_ms, now), at

    def take_leap(self) -> int:
        """Milliseconds since this was asked last in which nothing could run: the store's clock was set, or the machine
        slept."""
        slept = self._asleep()
        leapt = self._leapt + int(max(0, slept - self._slept))
        self._leapt, self._slept = 0, slept
        return leapt

    def _asleep(self) -> float:
        return self._clock.elapsed_ms() - self._awake() * 1000


class Holding(Protocol):
    """A run that is held: what the renewal needs of an attempt."""

    @property
    def lease_of(self) -> tuple[RunId, Token]: ...

    def renewed(self, answer: Renewed | Lost, sent: float) -> None:
        """The answer of a renewal sent at ``sent`` (elapsed ms)."""


AGAIN_S = 0.05
"""The first pause after a renewal that failed: a connection that was cut meanwhile shows only when it is used."""
AGAIN_PART = 6
"""The longest such pause is this part of the period. An outage may be interrupted by one contact of somebody else, and
grace begins; it may then go on for a gap. What is left of the grace is longer than this pause."""

LATE_PERIODS = 2
"""A renewal that comes after more periods than that is reported: the lease lasts for a little more than three."""

Opener = Callable[[], "RenewalStore"]


class RenewalStore(RunStore, Protocol):
    async def close(self) -> None:
        """Give back connections."""


async def renew_once(store: RunStore, held: Sequence[Holding], clock: Clock) -> None:
    """Renew the leases of attempts that live on this loop."""
    if held:
        sent = clock.elapsed_ms()
        for attempt, answer in zip(held, await store.renew([a.lease_of for a in held]), strict=True):
            attempt.renewed(answer, sent)


class Renewal:
    """Renews all leases every ``every_ms`` from a thread with a connection of its own, so that a busy loop keeps its
    runs. Without an opener (a store that only one loop may use) it renews from the loop."""

    def __init__(
        self, store: RunStore, opener: Opener | None, every_ms: int, clock: Clock, telemetry: Telemetry, holder: str
    ) -> None:
        self._store, self._opener, self._every = store, opener, every_ms / 1000
        self._clock, self._telemetry, self._holder = clock, telemetry, holder
        self._held: dict[RunId, Holding] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._again = AGAIN_S
        self._well_at: float | None = None

    def hold(self, attempt: Holding) -> None:
        """Renew this one from now on."""
        with self._lock:
            self._held[attempt.lease_of[0]] = attempt

    def let_go(self, attempt: Holding) -> None:
        """Stop renewing it."""
        with self._lock:
            if self._held.get(attempt.lease_of[0]) is attempt:
                del self._held[attempt.lease_of[0]]

    def start(self, spawner: Spawner, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None] | None:
        """Begin; the task to cancel at the end when there is no thread."""
        opener = self._opener
        if opener is None:
            return asyncio.create_task(self._on_loop())
        spawner.spawn("plaita-renewal", lambda: asyncio.run(self._in_thread(opener, loop)))
        return None

    def stop(self) -> None:
        """End the thread at its next look."""
        self._stop.set()

    async def _on_loop(self) -> None:
        pause = self._every
        while True:
            await asyncio.sleep(pause)
            pause = self._next(await self._guarded(lambda: renew_once(self._store, self._snapshot(), self._clock)))

    async def _in_thread(self, opener: Opener, loop: asyncio.AbstractEventLoop) -> None:
        store: RenewalStore | None = None
        pause = self._every
        while not self._stop.wait(pause):
            if store is None:
                try:
                    store = opener()
                except Unavailable as e:
                    self._telemetry.emit(events.RENEWAL_FAILED, holder=self._holder, error=str(e))
                    pause = self._next(False)
                    continue
            pause = self._next(await self._guarded(partial(self._round, store, loop)))
        if store is not None:
            await store.close()

    def _next(self, went_well: bool) -> float:
        """Seconds until the next renewal."""
        if went_well:
            self._again = AGAIN_S
            self._mark()
            return self._every
        pause, self._again = self._again, 2 * self._again
        return min(pause, self._every / AGAIN_PART)

    def _mark(self) -> None:
        """A renewal went well: was it in time?"""
        now, before = self._clock.elapsed_ms(), self._well_at
        self._well_at = now
        late_ms = 0 if before is None else now - before - LATE_PERIODS * self._every * 1000
        if late_ms > 0:
            self._telemetry.emit(events.RENEWAL_LATE, holder=self._holder, late_ms=round(late_ms))

    async def _round(self, store: RunStore, loop: asyncio.AbstractEventLoop) -> None:
        held = self._snapshot()
        if not held:
            return
        sent = self._clock.elapsed_ms()
        answers = await store.renew([a.lease_of for a in held])
        if not loop.is_closed():
            for attempt, answer in zip(held, answers, strict=True):
                loop.call_soon_threadsafe(attempt.renewed, answer, sent)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Whether it went well."""
        try:
            await work()
        except Unavailable as e:
            self._telemetry.emit(events.RENEWAL_FAILED, holder=self._holder, error=str(e))
            return False
        return True

    def _snapshot(self) -> list[Holding]:
        with self._lock:
            return list(self._held.values())
