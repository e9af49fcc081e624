"""The worker: takes runs while it has room and moves each in an attempt, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

from plaita.base.clock import new_id
from plaita.base.errors import Unavailable
from plaita.core.imports import import_all
from plaita.ports.backend import Backend
from plaita.ports.processes import Process, State
from plaita.ports.runs import Claim, HandBack, Header, Step
from plaita.server.worker.attempt import Attempt, Deps
from plaita.server.worker.definitions import Definitions
from plaita.server.worker.intake import Intake, pause
from plaita.server.worker.lease import Renewal
from plaita.server.worker.mail import Mail
from plaita.server.worker.options import Surroundings, WorkerOptions
from plaita.server.worker.pool import Pool
from plaita.server.worker.presence import Presence
from plaita.telemetry import events as told

REAP_MS = 200
"""How often dead processes on this machine are looked for: takeover takes this long at most."""
FAREWELL_S: Final = 2.0
"""How long a worker waits for each thing that it says to a store without an answer when it comes or leaves. There are
five at most: that it runs, what intake has under way, and that it drains, has cut its runs, and is gone."""
PRUNE_EVERY_MS = 3_600_000
"""How often a worker removes ended runs that are past their retention."""


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
        self._intake = Intake(self._deps, self, self.options)
        self._ready, self._drain_ms = around.ready, self.options.drain_ms
        self._told_to_stop = asyncio.Event()
        self._unanswered = False
        self._given_back = asyncio.Event()

    @property
    def running(self) -> int:
        """Runs this worker holds."""
        return len(self._attempts)

    @property
    def room(self) -> int:
        """So many more runs it may hold."""
        return self.options.concurrency - len(self._attempts)

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
            await self._soon("announce", lambda: self.presence.say("running"))
            if self._ready is not None:
                self._ready()
            async with asyncio.TaskGroup() as group:
                asking = [group.create_task(self._reap(stop))]
                if self.options.facts.instance:
                    asking.append(group.create_task(self.presence.beat(stop, self.options.beat_ms)))
                if self.options.retention_ms is not None:
                    asking.append(group.create_task(self._prune(stop, self.options.retention_ms)))
                taking = group.create_task(self._intake.run(stop))
                await stop.wait()
                _, silent = await asyncio.wait([*asking, taking], timeout=FAREWELL_S)
                for task in silent - {taking}:
                    task.cancel()
                self._intake.give_up()
        finally:
            handed_back = await self._drain()
            self._mail.close()
            self._renewal.stop()
            if renewing is not None:
                renewing.cancel()
            self._pool.close()
            await self._say_leaving("stopping")
            self.presence.leave()
            await self._soon("withdraw", lambda: self._store.withdraw(self.holder))
            self._telemetry.emit(told.WORKER_STOPPED, holder=self.holder, handed_back=handed_back)

    def leave(self, *, graceful: bool) -> None:
        """Stop. Not ``graceful``: what is under way is cut at once and handed back."""
        if not graceful:
            self._drain_ms = 0
        self._told_to_stop.set()

    async def _say_leaving(self, state: State) -> None:
        """Say in which state this worker leaves. A store that gave the last one no answer is not told the next."""
        if self._unanswered:
            self.presence.become(state)
        else:
            self._unanswered = not await self._soon("announce", lambda: self.presence.say(state))

    async def _soon(self, verb: str, ask: Callable[[], Awaitable[object]]) -> bool:
        """Was it done in time? A store that did not hear it finds out at the next beat, or when the leases end."""
        try:
            async with asyncio.timeout(FAREWELL_S):
                await ask()
        except Unavailable as e:
            self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb=verb, error=str(e))
        except TimeoutError:
            silent = f"no answer within {FAREWELL_S:.0f} s"
            self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb=verb, error=silent)
        else:
            return True
        return False

    async def changed(self, timeout_ms: int) -> None:
        """Return when a run was given back, or after the timeout."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._given_back.wait()
        except TimeoutError:
            return
        self._given_back.clear()

    async def start(self, claim: Claim, sent: float) -> None:
        """Move a claimed run."""
        header = claim.header
        self._telemetry.emit(told.RUN_CLAIMED, run_id=header.run_id, flow_id=header.flow_id)
        if claim.takeover:
            self._telemetry.emit(told.RUN_TAKEN_OVER, run_id=header.run_id, flow_id=header.flow_id)
        program = await self._definitions.program(header.closure, header.entry, header.imports)
        if program is None:
            reason = self._definitions.lacks[header.closure]
            self._telemetry.emit(told.FLOW_UNLOADABLE, run_id=header.run_id, flow_id=header.flow_id, missing=reason)
            await self.give_back(claim)
            return
        attempt = Attempt(self._deps, claim, program, sent)
        task = asyncio.create_task(attempt.run())
        self._attempts[task] = attempt
        self._renewal.hold(attempt)
        task.add_done_callback(self._ended)

    async def look(self) -> None:
        """One of the held runs may have mail."""
        await self._mail.look()

    async def give_back(self, claim: Claim) -> None:
        """Let another process take a claimed run that was not begun."""
        step = Step(claim.header.run_id, claim.token, claim.header.seq + 1, "hand_back", {}, HandBack())
        await self._store.settle(step)

    def _ended(self, task: asyncio.Task[None]) -> None:
        attempt = self._attempts.pop(task)
        self._renewal.let_go(attempt)
        self._intake.freed()
        self._given_back.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            header: Header = attempt.header
            text = f"{type(error).__name__}: {error}"
            self._telemetry.emit(told.ATTEMPT_CRASHED, run_id=header.run_id, flow_id=header.flow_id, error=text)

    async def _reap(self, stop: asyncio.Event) -> None:
        """Release what dead processes on this machine held."""
        while not stop.is_set():
            try:
                if count := await self._store.bury_dead():
                    self._telemetry.emit(told.HOLDERS_RELEASED, count=count)
            except Unavailable as e:
                self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb="bury", error=str(e))
            await pause(stop, REAP_MS)

    async def _prune(self, stop: asyncio.Event, retention_ms: int) -> None:
        """Remove ended runs past their retention."""
        while not stop.is_set():
            try:
                count = await self._store.prune(await self._store.now_ms() - retention_ms)
                self._telemetry.emit(told.RUNS_PRUNED, count=count)
            except Unavailable as e:
                self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb="prune", error=str(e))
            await pause(stop, PRUNE_EVERY_MS)

    async def _drain(self) -> int:
        """Let attempts reach their next settle; what ignores that is cut at the deadline."""
        self._deps.draining.set()
        async with asyncio.TaskGroup() as group:
            if self.options.facts.instance:
                group.create_task(self._say_leaving("draining"))
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
            await self._soon("release", lambda: self._store.release(self.holder))
        return count


def _process(holder: str, options: WorkerOptions, now_ms: int) -> Process:
    facts = replace(options.facts, concurrency=options.concurrency)
    return Process(holder, os.getpid(), options.queues, options.only, options.imports, now_ms, facts)
