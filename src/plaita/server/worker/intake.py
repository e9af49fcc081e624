"""What a worker takes from the store: messages of producers, and runs that are due."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from plaita.base.clock import new_id
from plaita.base.errors import Unavailable
from plaita.ports.runs import Claim
from plaita.server.worker.attempt import RESEND_MS, Deps
from plaita.server.worker.messages import ACCEPT_MAX, accept_messages
from plaita.server.worker.options import WorkerOptions
from plaita.telemetry import events as told

T = TypeVar("T")

CLAIM_MAX: Final = 32
FEW: Final = 16
FEW_PART: Final = 4
"""With room for fewer than ``FEW``, and than this part of all, a claim waits a moment for more: those of a handful each
keep store and worker from working at the same time."""
REST_MS: Final = 1
RETRY_MS: Final = 500
LEAVING: Final = 3
"""Rounds of the loop after which a request has left the process: its task begins, it is queued, it is sent."""


@dataclass(frozen=True, slots=True)
class Taken:
    """How many messages were accepted, and what was claimed; leases count from ``asked_ms`` (elapsed). ``carried``: how
    much was carried on where nothing may be claimed."""

    accepted: int
    claims: list[Claim]
    asked_ms: float
    carried: int = 0


class Taker(Protocol):
    """Who the intake works for."""

    @property
    def room(self) -> int:
        """So many more runs may be claimed."""

    @property
    def running(self) -> int:
        """So many are held."""

    @property
    def lacks(self) -> Mapping[str, str]:
        """Definitions that cannot be loaded here, by closure hash."""

    async def start(self, claim: Claim, sent: float) -> None:
        """Move a claimed run. Raises ``Unavailable``: begin again."""

    async def give_back(self, claim: Claim) -> None:
        """As if it had not been claimed. Raises ``Unavailable``."""

    async def look(self) -> None:
        """One of the held runs may have mail."""


class Intake:
    """Asks ahead: the store works on the next claim while the runs of the last one are moved."""

    def __init__(self, deps: Deps, taker: Taker, options: WorkerOptions) -> None:
        self._store, self._clock, self._telemetry, self._holder = deps.store, deps.clock, deps.telemetry, deps.holder
        self._taker, self._options = taker, options
        self._few = max(1, min(FEW, options.concurrency // FEW_PART))
        self._freed = asyncio.Event()
        self._asked: asyncio.Task[Taken] | None = None
        self._gave_up = False
        self._away_since: float | None = None

    def freed(self) -> None:
        """A run was given back."""
        self._freed.set()

    def give_up(self) -> None:
        """The worker stops and the store does not answer: nobody waits for what was asked. A claim that it grants all
        the same ends with those of the worker."""
        self._gave_up = True
        if self._asked is not None:
            self._asked.cancel()

    async def run(self, stop: asyncio.Event) -> None:
        """Accept messages, claim while there is room; otherwise wait for a hint, for room, or the end.

        What was claimed and not started when ``stop`` is set is given back.
        """
        ahead: asyncio.Task[Taken] | None = None
        try:
            while not stop.is_set():
                if ahead is None and self._taker.running and 0 < self._taker.room < self._few:
                    await pause(stop, REST_MS)
                # What is given back from here on is seen when nothing is left to do.
                self._freed.clear()
                room = self._taker.room
                asked, ahead = ahead or self._ask(room, stop, alone=not self._taker.running), None
                taken = await self._answer(asked)
                left = self._taker.room - len(taken.claims)
                if taken.claims and left >= self._few:
                    ahead = self._ask(left, stop, alone=False)
                    for _ in range(LEAVING):
                        await asyncio.sleep(0)
                await self._start(taken, stop)
                if not taken.claims and not taken.carried and taken.accepted < ACCEPT_MAX:
                    await self._idle(stop, full=room <= 0)
            if ahead is not None:
                await self._start(await self._answer(ahead), stop)
        finally:
            if ahead is not None:
                ahead.cancel()

    async def _answer(self, asked: asyncio.Task[Taken]) -> Taken:
        self._asked = asked
        if self._gave_up:
            asked.cancel()
        try:
            return await asked
        except asyncio.CancelledError:
            if self._gave_up:
                return Taken(0, [], 0.0)
            raise
        finally:
            self._asked = None

    def _ask(self, room: int, stop: asyncio.Event, *, alone: bool) -> asyncio.Task[Taken]:
        return asyncio.create_task(self._take(min(room, CLAIM_MAX), stop, alone=alone))

    async def _take(self, n: int, stop: asyncio.Event, *, alone: bool) -> Taken:
        asked_ms = self._clock.elapsed_ms()
        if n <= 0:
            accepted, carried = await asyncio.gather(self._accept(), self._carry_on(stop))
            return Taken(accepted, [], asked_ms, carried)
        accepted, claims = await asyncio.gather(self._accept(), self._claim(n, stop, alone=alone))
        return Taken(accepted, claims, asked_ms)

    async def _accept(self) -> int:
        return await accept_messages(self._store, self._telemetry) if self._options.only is None else 0

    async def _claim(self, n: int, stop: asyncio.Event, *, alone: bool) -> list[Claim]:
        nonce, options = f"{self._holder}.{new_id()}", self._options

        async def ask() -> list[Claim]:
            lacks = frozenset(self._taker.lacks)
            return await self._store.claim(nonce, n, queues=options.queues, lacks=lacks, only=options.only, alone=alone)

        return await self._until_answered("claim", ask, stop) or []

    async def _carry_on(self, stop: asyncio.Event) -> int:
        """What a claim would carry on of what steps promised to others: it does not wait for room here."""
        return await self._until_answered("carry_on", self._store.carry_on, stop) or 0

    async def _start(self, taken: Taken, stop: asyncio.Event) -> None:
        """Begin what was claimed. A run that nobody began has lost no process: it must not look like one that did."""

        async def start(claim: Claim) -> bool:
            await self._taker.start(claim, taken.asked_ms)
            return True

        left = [claim for claim in taken.claims if not await self._until_answered("start", partial(start, claim), stop)]
        await asyncio.gather(*map(self._give_back, left))

    async def _give_back(self, claim: Claim) -> None:
        try:
            await self._taker.give_back(claim)
        except Unavailable as e:
            self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb="settle", error=str(e))

    async def _until_answered(self, verb: str, ask: Callable[[], Awaitable[T]], stop: asyncio.Event) -> T | None:
        """While the outcome is unknown the same request is sent again. ``None``: the worker stops."""
        pause_ms, most_ms = RESEND_MS
        while not stop.is_set():
            try:
                answer = await ask()
            except Unavailable as e:
                self._away(verb, e)
            else:
                self._there()
                return answer
            await pause(stop, pause_ms)
            pause_ms = min(2 * pause_ms, most_ms)
        return None

    def _away(self, verb: str, error: Unavailable) -> None:
        self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb=verb, error=str(error))
        if self._away_since is None:
            self._away_since = self._clock.elapsed_ms()

    def _there(self) -> None:
        if self._away_since is not None:
            seconds = (self._clock.elapsed_ms() - self._away_since) / 1000
            self._telemetry.emit(told.STORE_BACK, store=self._store.name, seconds=round(seconds, 1))
            self._away_since = None

    async def _idle(self, stop: asyncio.Event, *, full: bool) -> None:
        waits: list[asyncio.Task[object]] = [
            asyncio.create_task(stop.wait()),
            asyncio.create_task(self._freed.wait()),
        ]
        if not full:
            waits.append(asyncio.create_task(self._hint()))
        try:
            await asyncio.wait(waits, timeout=self._options.poll_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()

    async def _hint(self) -> None:
        """Something may be due, or one of the held runs may have mail."""
        try:
            await self._store.hint(self._options.poll_ms)
            await self._taker.look()
        except Unavailable as e:
            self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb="hint", error=str(e))
            await asyncio.sleep(RETRY_MS / 1000)


async def pause(stop: asyncio.Event, ms: int) -> None:
    """So long, or until ``stop`` is set."""
    try:
        async with asyncio.timeout(ms / 1000):
            await stop.wait()
    except TimeoutError:
        return
