"""The worker: claims runs while slots are free and moves each in an attempt, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from plaita.base.clock import Clock, SystemClock, new_id
from plaita.base.errors import Unavailable
from plaita.core.callback import FlowCallback
from plaita.core.imports import import_all
from plaita.policy.retry import ATTEMPTS_MAX
from plaita.ports.backend import Backend
from plaita.ports.processes import Facts, Process
from plaita.ports.runs import Claim, HandBack, Header, Step
from plaita.ports.values import RunId
from plaita.server.worker.attempt import RESEND_MS, Attempt, Deps
from plaita.server.worker.changed import DefinitionChange
from plaita.server.worker.definitions import Definitions
from plaita.server.worker.lease import Renewal
from plaita.server.worker.mail import Mail
from plaita.server.worker.messages import ACCEPT_MAX, accept_messages
from plaita.server.worker.pool import Pool, Spawner, ThreadSpawner
from plaita.server.worker.presence import Presence
from plaita.server.worker.timeline import Observer
from plaita.telemetry import events as told
from plaita.telemetry.sink import LogTelemetry, Telemetry

T = TypeVar("T")

CLAIM_MAX = 32
REAP_MS = 200
"""How often dead processes on this machine are looked for: takeover takes this long at most."""
RETRY_MS = 500
PRUNE_EVERY_MS = 3_600_000
"""How often a worker removes ended runs that are past their retention."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker behaves. ``only`` binds it to one run and its children; ``env`` is what ``$ENV`` may read of.

    ``retention_ms``: ended runs older than that are removed, ``None`` removes nothing. ``holder``: the name under which
    it claims, a new one when empty. ``facts``: what it says of itself; with an ``instance`` it says so every
    ``beat_ms`` and obeys commands for that name.
    """

    concurrency: int = 100
    pool_size: int = 32
    queues: tuple[str, ...] = ("default",)
    only: RunId | None = None
    imports: tuple[str, ...] = ()
    renew_ms: int = 3_000
    poll_ms: int = 1_000
    drain_ms: int = 30_000
    timezone: str | None = None
    active_ms_max: int = 1_800_000
    attempts_max: int = ATTEMPTS_MAX
    definition_change: DefinitionChange = "pinned"
    retention_ms: int | None = None
    holder: str = ""
    facts: Facts = field(default_factory=Facts)
    beat_ms: int = 10_000
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a worker stands in: clock, threads, who is told. Replaced as a whole by simulations.

    ``callbacks`` are told of flows and nodes after each settle, at least once. ``definitions`` are shared with other
    workers of the process; without, a worker has its own. ``ready`` is called once the worker takes runs.
    """

    clock: Clock = field(default_factory=SystemClock)
    telemetry: Telemetry = field(default_factory=LogTelemetry)
    spawner: Spawner = field(default_factory=ThreadSpawner)
    observer: Observer | None = None
    callbacks: Sequence[FlowCallback] = ()
    definitions: Definitions | None = None
    ready: Callable[[], None] | None = None


class Worker:
    """One worker on one event loop. ``renewal_opener`` opens the store once more for the renewal thread."""

    def __init__(
        self,
        store: Backend,
        options: WorkerOptions | None = None,
        surroundings: Surroundings | None = None,
        *,
        renewal_opener: Callable[[], Backend] | None = None,
    ) -> None:
        self.options = options or WorkerOptions()
        around = surroundings or Surroundings()
        self.holder = self.options.holder or new_id()
        self._store = store
        self._clock, self._telemetry, self._spawner = around.clock, around.telemetry, around.spawner
        self._pool = Pool(self.options.pool_size, self._spawner)
        self._renewal = Renewal(store, renewal_opener, self.options.renew_ms, self._clock, self._telemetry, self.holder)
        self._definitions = around.definitions or Definitions(store)
        self._deps = Deps(
            store,
            self._pool,
            self._clock,
            self._telemetry,
            self.options.env,
            self.holder,
            self.options.timezone,
            self.options.active_ms_max,
            self.options.attempts_max,
            self.options.definition_change,
            around.observer,
            around.callbacks,
        )
        self._attempts: dict[asyncio.Task[None], Attempt] = {}
        self._mail = Mail(store, self._clock, self._telemetry, lambda: list(self._attempts.values()))
        self.presence = Presence(
            store,
            self._clock,
            self._telemetry,
            _process(self.holder, self.options, self._clock.now_ms()),
            lambda: self.running,
        )
        self._ready, self._drain_ms = around.ready, self.options.drain_ms
        self._told_to_stop = asyncio.Event()
        self._freed = asyncio.Event()
        self._given_back = asyncio.Event()

    @property
    def running(self) -> int:
        """Runs this worker holds."""
        return len(self._attempts)

    @property
    def lacks(self) -> Mapping[str, str]:
        """Definitions this process failed to load, by closure hash, with the reason."""
        return self._definitions.lacks

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop`` is set, then drain: attempts reach their next settle and hand their run back."""
        import_all(self.options.imports)
        self._told_to_stop = stop
        await self.presence.enter()
        self._telemetry.emit(
            told.WORKER_STARTED, holder=self.holder, store=self._store.name, concurrency=self.options.concurrency
        )
        self.presence.listen(self)
        self._mail.listen()
        renewing = self._renewal.start(self._spawner, asyncio.get_running_loop())
        try:
            await self.presence.say("running")
            if self._ready is not None:
                self._ready()
            async with asyncio.TaskGroup() as group:
                if self.options.facts.instance:
                    group.create_task(self.presence.beat(stop, self.options.beat_ms))
                group.create_task(self._reap(stop))
                group.create_task(self._intake(stop))
                if self.options.retention_ms is not None:
                    group.create_task(self._prune(stop, self.options.retention_ms))
        finally:
            handed_back = await self._drain()
            self._mail.close()
            self._renewal.stop()
            if renewing is not None:
                renewing.cancel()
            self._pool.close()
            await self.presence.say("stopping")
            self.presence.leave()
            await self._let_go("withdraw", self._store.withdraw(self.holder))
            self._telemetry.emit(told.WORKER_STOPPED, holder=self.holder, handed_back=handed_back)

    def leave(self, *, graceful: bool) -> None:
        """Stop. Not ``graceful``: what is under way is cut at once and handed back."""
        if not graceful:
            self._drain_ms = 0
        self._told_to_stop.set()

    async def _let_go(self, verb: str, asked: Awaitable[object]) -> None:
        """At the end; a store that does not hear it finds out when the leases end."""
        try:
            await asked
        except Unavailable as e:
            self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb=verb, error=str(e))

    async def changed(self, timeout_ms: int) -> None:
        """Return when a run was given back, or after the timeout."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._given_back.wait()
        except TimeoutError:
            return
        self._given_back.clear()

    async def _intake(self, stop: asyncio.Event) -> None:
        """Accept messages, claim while slots are free; otherwise wait for a hint, a free slot, or the end."""
        while not stop.is_set():
            accepted = 0
            if self.options.only is None:
                accepted = await accept_messages(self._store, self._telemetry)
            free = self.options.concurrency - len(self._attempts)
            claims: list[Claim] = []
            if free > 0:
                claims = await self._claim(min(free, CLAIM_MAX), stop)
            if not claims and accepted < ACCEPT_MAX:
                await self._idle(stop, full=free <= 0)

    async def _claim(self, n: int, stop: asyncio.Event) -> list[Claim]:
        nonce, sent = f"{self.holder}.{new_id()}", self._clock.elapsed_ms()

        async def ask() -> list[Claim]:
            return await self._store.claim(
                nonce,
                n,
                queues=self.options.queues,
                lacks=frozenset(self._definitions.lacks),
                only=self.options.only,
                alone=not self._attempts,
            )

        claims = await self._until_answered("claim", ask, stop) or []
        for claim in claims:
            # What is not started because the worker stops is given back when it leaves.
            await self._until_answered("start", partial(self._start, claim, sent), stop)
        return claims

    async def _until_answered(self, verb: str, ask: Callable[[], Awaitable[T]], stop: asyncio.Event) -> T | None:
        """While the outcome is unknown the same request is sent again. ``None``: the worker stops."""
        pause_ms, most_ms = RESEND_MS
        while not stop.is_set():
            try:
                return await ask()
            except Unavailable as e:
                self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb=verb, error=str(e))
            await _pause(stop, pause_ms)
            pause_ms = min(2 * pause_ms, most_ms)
        return None

    async def _start(self, claim: Claim, sent: float) -> None:
        header = claim.header
        self._telemetry.emit(told.RUN_CLAIMED, run_id=header.run_id, flow_id=header.flow_id)
        if claim.takeover:
            self._telemetry.emit(told.RUN_TAKEN_OVER, run_id=header.run_id, flow_id=header.flow_id)
        program = await self._definitions.program(header.closure, header.entry, header.imports)
        if program is None:
            reason = self._definitions.lacks[header.closure]
            self._telemetry.emit(told.FLOW_UNLOADABLE, run_id=header.run_id, flow_id=header.flow_id, missing=reason)
            await self._give_back(claim)
            return
        attempt = Attempt(self._deps, claim, program, sent)
        task = asyncio.create_task(attempt.run())
        self._attempts[task] = attempt
        self._renewal.hold(attempt)
        task.add_done_callback(self._ended)

    async def _give_back(self, claim: Claim) -> None:
        step = Step(claim.header.run_id, claim.token, claim.header.seq + 1, "hand_back", {}, HandBack())
        await self._store.settle(step)

    def _ended(self, task: asyncio.Task[None]) -> None:
        attempt = self._attempts.pop(task)
        self._renewal.let_go(attempt)
        self._freed.set()
        self._given_back.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            header: Header = attempt.header
            text = f"{type(error).__name__}: {error}"
            self._telemetry.emit(told.ATTEMPT_CRASHED, run_id=header.run_id, flow_id=header.flow_id, error=text)

    async def _idle(self, stop: asyncio.Event, *, full: bool) -> None:
        self._freed.clear()
        waits: list[asyncio.Task[object]] = [
            asyncio.create_task(stop.wait()),
            asyncio.create_task(self._freed.wait()),
        ]
        if not full:
            waits.append(asyncio.create_task(self._hint()))
        try:
            await asyncio.wait(waits, timeout=self.options.poll_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()

    async def _hint(self) -> None:
        """Something may be due, or one of the held runs may have mail."""
        try:
            await self._store.hint(self.options.poll_ms)
            await self._mail.look()
        except Unavailable as e:
            self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb="hint", error=str(e))
            await asyncio.sleep(RETRY_MS / 1000)

    async def _reap(self, stop: asyncio.Event) -> None:
        """Release what dead processes on this machine held."""
        while not stop.is_set():
            try:
                if count := await self._store.bury_dead():
                    self._telemetry.emit(told.HOLDERS_RELEASED, count=count)
            except Unavailable as e:
                self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb="bury", error=str(e))
            await _pause(stop, REAP_MS)

    async def _prune(self, stop: asyncio.Event, retention_ms: int) -> None:
        """Remove ended runs past their retention."""
        while not stop.is_set():
            try:
                count = await self._store.prune(await self._store.now_ms() - retention_ms)
                self._telemetry.emit(told.RUNS_PRUNED, count=count)
            except Unavailable as e:
                self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb="prune", error=str(e))
            await _pause(stop, PRUNE_EVERY_MS)

    async def _drain(self) -> int:
        """Let attempts reach their next settle; what ignores that is cut at the deadline."""
        self._deps.draining.set()
        async with asyncio.TaskGroup() as group:
            if self.options.facts.instance:
                group.create_task(self.presence.say("draining"))
            return await self._empty()

    async def _empty(self) -> int:
        count = len(self._attempts)
        if not count:
            return 0
        self._telemetry.emit(told.WORKER_DRAINING, holder=self.holder, running=count)
        for attempt in self._attempts.values():
            attempt.stir()
        await asyncio.wait(list(self._attempts), timeout=self._drain_ms / 1000)
        left = list(self._attempts)
        for task in left:
            self._telemetry.emit(told.DRAIN_CUT, run_id=self._attempts[task].header.run_id)
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        if left:
            await self._let_go("release", self._store.release(self.holder))
        return count


def _process(holder: str, options: WorkerOptions, now_ms: int) -> Process:
    facts = replace(options.facts, concurrency=options.concurrency)
    return Process(holder, os.getpid(), options.queues, options.only, options.imports, now_ms, facts)


async def _pause(stop: asyncio.Event, ms: int) -> None:
    try:
        async with asyncio.timeout(ms / 1000):
            await stop.wait()
    except TimeoutError:
        return
