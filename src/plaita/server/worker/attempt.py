"""One attempt: a run from its claim to the settle that gives it back or ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from plaita.base.clock import Clock, roll
from plaita.base.errors import InputError, Unavailable
from plaita.base.json import decode
from plaita.core.callback import FlowCallback
from plaita.core.calls import accept_request, is_another_request
from plaita.engine.delta import UnreadableState, restore, take_delta
from plaita.engine.effects import Call, Cancel, Effects, Wake
from plaita.engine.failure import FLOW_CODE, Failure
from plaita.engine.machine import Conditions, Run, advance, next_due, open_calls, start
from plaita.engine.program import Program
from plaita.policy.retry import ATTEMPTS_MAX
from plaita.ports.backend import Backend
from plaita.ports.runs import (
    Block,
    Claim,
    Closing,
    Dup,
    End,
    Lost,
    Mismatch,
    Park,
    Renewed,
    SettleAnswer,
    Settled,
    Stale,
    Step,
    WaitConflict,
)
from plaita.ports.values import Mail, RunId, Token, WaitId
from plaita.server.worker.bell import Bell
from plaita.server.worker.changed import UNCHANGED, DefinitionChange, refusal_of
from plaita.server.worker.compose import Commit, compose, error_bytes
from plaita.server.worker.detached import spawns_of
from plaita.server.worker.lease import LocalLease, StoreTime
from plaita.server.worker.opencalls import OpenCalls
from plaita.server.worker.pool import Pool
from plaita.server.worker.timeline import Observer, Timeline
from plaita.server.worker.unread import Unread
from plaita.telemetry import events as told
from plaita.telemetry.sink import Telemetry

T = TypeVar("T")

RESEND_MS = (20, 1_000)
"""First and longest pause before the same request is sent again."""


@dataclass(slots=True)
class Deps:
    """What every attempt of a worker shares. ``draining`` is set once."""

    store: Backend
    pool: Pool
    clock: Clock
    telemetry: Telemetry
    env: Mapping[str, str]
    holder: str
    timezone: str | None = None
    active_ms_max: int = 1_800_000
    attempts_max: int = ATTEMPTS_MAX
    definition_change: DefinitionChange = "pinned"
    observer: Observer | None = None
    callbacks: Sequence[FlowCallback] = ()
    draining: asyncio.Event = field(default_factory=asyncio.Event)


class Attempt:
    """Owns the machine of one claimed run. Lives on the worker's loop."""

    def __init__(self, deps: Deps, claim: Claim, program: Program, sent: float) -> None:
        self.deps, self.header, self.token, self.program = deps, claim.header, claim.token, program
        self.seq, self._frames = claim.header.seq, claim.frames
        self.lease = LocalLease(sent + claim.lease_ms)
        self._time = StoreTime(deps.clock, claim.now_ms, asyncio.get_running_loop().time)
        self._unread = Unread(claim.mailbox)
        self._cancel = claim.cancel
        self._lost: Lost | None = None
        self._begins = False
        self._bell = Bell()
        self._timeline = Timeline(claim.header.run_id, deps.telemetry, deps.observer, deps.callbacks)
        self._calls = OpenCalls(deps.pool, claim.header.incarnation, self._timeline, self._bell.ring, deps.clock)

    @property
    def lease_of(self) -> tuple[RunId, Token]:
        return self.header.run_id, self.token

    @property
    def is_idle(self) -> bool:
        """Only calls are under way: nothing moves until one comes back or mail arrives."""
        return self._calls.any_runs and not self._bell.is_rung

    def renewed(self, answer: Renewed | Lost, sent: float) -> None:
        """A renewal was answered."""
        if isinstance(answer, Lost):
            self._lost = answer
        else:
            self._hear(answer.now_ms, answer.cancel, answer.mailbox)
            self.lease.until = max(self.lease.until, sent + answer.lease_ms)
        self._bell.ring()

    async def run(self) -> None:
        """Move the run until it is given back. Everything unsaved is dropped when the claim is lost."""
        try:
            if await self._goes_on():
                machine = await self._restore()
                if machine is not None:
                    await self._move(machine)
        finally:
            self._bell.close()
            self._calls.close()

    async def _goes_on(self) -> bool:
        """A run that has begun ends here when its definition was published anew and that is to be refused."""
        if self.deps.definition_change == "pinned" or self._cancel or not await self._stored():
            return True
        error = await self._until_answered("flow", lambda: refusal_of(self.deps.store, self.header))
        while error:
            # What was answered is closed as read: an answer that comes in between is met by another look.
            answered = [event.id for event in self._unread.take(()) if isinstance(event, Wake)]
            closes = tuple(Closing(WaitId(wait_id), "read") for wait_id in answered)
            step = replace(self._closing(End("error", error=error)), closes=closes, ack=self._unread.ack)
            if not isinstance(await self._write(step), WaitConflict) or not await self._reload():
                return False
        return error == UNCHANGED

    async def _restore(self) -> Run | None:
        """The machine of the last commit. An input that violates its type ends the run, unreadable state blocks it."""
        conditions = Conditions(
            self.header.run_id,
            self.deps.env,
            self.deps.timezone,
            redrive=True,
            active_ms_max=self.deps.active_ms_max,
            attempts_max=self.deps.attempts_max,
            trace=self._timeline.trace,
            entry=self.header.entry,
        )
        stored = await self._stored()
        if stored is None:
            return None
        self._frames, self._begins = None, not stored
        value = decode(self.header.input)
        self._time.take_leap()
        now = self._time.now()
        try:
            if not stored:
                base = max(self.header.submitted_ms, self.header.not_before_ms or 0)
                return start(self.program, conditions, value, now_ms=now, base_ms=base, dice=roll())
            machine = restore(self.program, conditions, value, stored, now_ms=now, reopened=self.header.reopened)
            # Between the last commit and the claim nobody may have moved the run: that is no active time.
            machine.now_ms = max(machine.now_ms, now)
        except InputError as e:
            failure = Failure("input_error", FLOW_CODE, f"input {e}", "flow_error")
            await self._write(self._closing(End("error", error=error_bytes(failure))))
            return None
        except UnreadableState as e:
            self.deps.telemetry.emit(told.RUN_BLOCKED, run_id=self.header.run_id, reason=str(e))
            await self._write(self._closing(Block(str(e))))
            return None
        calls = open_calls(machine)
        doubts = [call for call in calls if is_another_request(call)]
        if doubts and not await self._settle_doubts(machine, doubts):
            return None
        self._calls.allow_only(calls)
        return machine

    async def _stored(self) -> Mapping[str, bytes] | None:
        """The frames of the last commit: none where the run has not begun, given back or not. ``None``: there was no
        answer to wait for."""
        if not self.header.seq:
            return {}
        if self._frames is None:
            self._frames = await self._until_answered("frames", lambda: self.deps.store.frames(self.header.run_id))
        return self._frames

    async def _settle_doubts(self, machine: Run, doubts: Sequence[Call]) -> bool:
        """Repeated calls would be other requests than the first time: may all of them be made all the same?"""
        blocking = [call for call in doubts if call.node.model.on_doubt == "block"]
        if not blocking:
            for call in doubts:
                where = call.frame.where(call.node.id)
                self.deps.telemetry.emit(told.DOUBT_RERUN, run_id=self.header.run_id, node_id=call.node.id, path=where)
            return True
        names = ", ".join(repr(call.frame.where(call.node.id)) for call in blocking)
        reason = f"node {names} was called before with other arguments; retry runs it with those of now"
        self.deps.telemetry.emit(told.RUN_BLOCKED, run_id=self.header.run_id, reason=reason)
        for call in blocking:
            accept_request(machine, call)
        await self._write(replace(self._closing(Block(reason)), delta=take_delta(machine)))
        return False

    async def _move(self, machine: Run) -> None:
        """Calls begun, events in, a settle out; until the run is not ours any more."""
        due = True
        while self._lost is None:
            self._begin_allowed()
            news = self._unread or self._calls.any_returned or self._cancel
            # In a drain with nothing under way the run is handed back.
            if not (due or news or (self.deps.draining.is_set() and not self._calls.any_runs)):
                due = await self._wait(machine)
                continue
            # A cancel stands alone.
            events = [Cancel()] if self._cancel else self._unread.take(self._calls.carry())
            # A clock that was set, or a machine that slept, is no active time.
            machine.now_ms += self._time.take_leap()
            effects = advance(machine, events, now_ms=self._time.now(), dice=roll())
            self._timeline.advanced(machine, effects)
            progress = bool(events) or effects.fired or self._begins
            step = compose(machine, effects, self._commit(effects, progress=progress))
            if isinstance(step.next, Park):
                self._timeline.parks(machine)
            answer = await self._write(step)
            if isinstance(answer, Settled | Dup):
                self._timeline.stored()
            if isinstance(answer, WaitConflict):
                self.deps.telemetry.emit(told.SETTLE_REFUSED, run_id=self.header.run_id, answer="conflict")
                self._timeline.refused()
                again = await self._restore() if await self._reload() else None
                if again is None:
                    return
                machine, due = again, True
                continue
            if not isinstance(answer, Settled | Dup) or not answer.held:
                return
            self._accepted(effects, answer)
            due = effects.more
        _tell_lost(self.deps, self.lease_of, self.seq, self._lost)

    def _commit(self, effects: Effects, *, progress: bool) -> Commit:
        return Commit(
            self.header,
            self.token,
            self.seq + 1,
            self._unread.ack,
            progress,
            self.deps.draining.is_set(),
            self._timeline.take(),
            spawns_of(self.header, effects.detached),
        )

    def _accepted(self, effects: Effects, answer: Settled | Dup) -> None:
        self.seq, self._begins = answer.seq, False
        self._calls.carried()
        self._hear(answer.now_ms, answer.cancel, answer.mailbox)
        for call_id in effects.drops:
            self._calls.drop(call_id)
        self._calls.allow(effects.calls.values())

    def _hear(self, now_ms: int, cancel: bool, mailbox: tuple[Mail, ...]) -> None:
        self._time.hear(now_ms)
        self._cancel = self._cancel or cancel
        self._unread.hear(mailbox)

    async def _write(self, step: Step) -> SettleAnswer | None:
        """Settle and report it. ``None``: there was no answer to wait for."""
        sent = self.deps.clock.elapsed_ms()
        answer = await self._until_answered("settle", lambda: self.deps.store.settle(step))
        run_id, telemetry = self.header.run_id, self.deps.telemetry
        if isinstance(answer, Settled | Dup):
            seconds = (self.deps.clock.elapsed_ms() - sent) / 1000
            telemetry.emit(told.STEP_SETTLED, run_id=run_id, seq=answer.seq, seconds=round(seconds, 6))
            if isinstance(step.next, End):
                flow_id, status = self.header.flow_id, step.next.status
                telemetry.emit(told.RUN_ENDED, run_id=run_id, flow_id=flow_id, status=status)
        match answer:
            case Stale():
                _tell_lost(self.deps, self.lease_of, self.seq, answer)
            case Mismatch():
                telemetry.emit(told.SETTLE_REFUSED, run_id=run_id, answer="mismatch")
            case Dup(seq=seq):
                telemetry.emit(told.SETTLE_REPEATED, run_id=run_id, seq=seq)
        return answer

    async def _until_answered(self, verb: str, ask: Callable[[], Awaitable[T]]) -> T | None:
        """While the outcome is unknown the same request is sent again. ``None``: the claim was lost meanwhile, or the
        worker drains and nothing that was done would be lost: a store that is not back soon is not waited for."""
        pause_ms, most_ms = RESEND_MS
        while True:
            try:
                return await ask()
            except Unavailable as e:
                store = self.deps.store.name
                self.deps.telemetry.emit(told.STORE_UNAVAILABLE, store=store, verb=verb, error=str(e))
            if self._lost is not None:
                return None
            if pause_ms == most_ms and self.deps.draining.is_set() and not self._calls.any_unsaved:
                return None
            await asyncio.sleep(pause_ms / 1000)
            pause_ms = min(2 * pause_ms, most_ms)

    def _closing(self, following: Block | End) -> Step:
        history = self._timeline.take()
        return Step(
            self.header.run_id, self.token, self.seq + 1, following.__class__.__name__, {}, following, history=history
        )

    async def _reload(self) -> bool:
        """After a conflict what is stored of the run counts again, with all of its mail; what was begun or has returned
        is kept. ``False``: the claim was lost, or there was no answer to wait for."""
        claim = await self._until_answered("reload", lambda: self.deps.store.reload(self.header.run_id, self.token))
        if claim is None or isinstance(claim, Lost):
            return False
        self.header, self.seq, self._frames, self._unread = claim.header, claim.header.seq, claim.frames, Unread()
        self._hear(claim.now_ms, claim.cancel, claim.mailbox)
        return True

    def _begin_allowed(self) -> None:
        """Begin calls whose start is durable: never without a valid lease, after a cancel, or while draining."""
        if not self._calls.any_waits or self._cancel or self.deps.draining.is_set():
            return
        if self.lease.valid(self.deps.clock):
            self._calls.begin()

    async def _wait(self, machine: Run) -> bool:
        """Until news, a renewal or a timer; true when a timer is due."""
        due = next_due(machine)
        await self._bell.wait(None if due is None else max(0, due - self._time.now()) / 1000)
        return due is not None and due <= self._time.now()

    def stir(self) -> None:
        """Look again, for example because the worker drains."""
        self._bell.ring()


def _tell_lost(deps: Deps, lease: tuple[RunId, Token], seq: int, answer: Stale | Lost) -> None:
    """The claim is gone; and so may be a commit of ours, of which ``seq`` was the last."""
    run_id, token = lease
    deps.telemetry.emit(told.LEASE_LOST, run_id=run_id, holder=deps.holder)
    stored = _of_ours(answer, token)
    if stored is not None and stored < seq:
        deps.telemetry.emit(told.STORE_REWOUND, run_id=run_id, seq=seq, stored=stored)


def _of_ours(answer: Stale | Lost, token: Token) -> int | None:
    """The number the store has of the execution we held; another incarnation counts anew."""
    if isinstance(answer, Stale) and answer.token is not None and answer.token.incarnation != token.incarnation:
        return None
    return answer.seq
