"""Looks at the store after every verb and remembers what callers were told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from plaita.backends.gate import Gate
from plaita.backends.limits import Limits
from plaita.backends.rows import Rows
from plaita.backends.verbs.match import digest_of
from plaita.base.json import decode
from plaita.ports.inbox import EventAccepted
from plaita.ports.runs import (
    AlreadyTerminal,
    Cancelled,
    CancelRequested,
    Claim,
    Deleted,
    HandBack,
    Park,
    Reopened,
    Settled,
    Step,
    Submitted,
    Woken,
)  # fmt: skip
from plaita.ports.values import TERMINAL, RunId, WaitId
from plaita.testing.simulation.answers import Premises
from plaita.testing.simulation.picture import NOTHING, Picture, RunPicture, take
from plaita.testing.simulation.transitions import changes, of_message, of_settle

T = TypeVar("T")
Life = tuple[RunId, str]
"""Run id and incarnation."""


@dataclass(frozen=True, slots=True)
class Executed:
    """One verb and its answer; ``who`` sent it."""

    verb: str
    args: tuple[Any, ...]
    answer: Any
    who: str


@dataclass(slots=True)
class Outcome:
    """How a run ended first."""

    status: str
    output: Any
    error: Any
    lost_worker: bool


class Looking(Protocol):
    """The way to look at a store; where ``writes`` has not grown nothing was written."""

    @property
    def writes(self) -> int: ...

    def read(self, question: Callable[[Rows], T]) -> T:
        """Ask about everything it holds."""


class WatchedGate:
    """A gate that counts its transactions: where nothing was written there is nothing to look at."""

    def __init__(self, gate: Gate) -> None:
        self._gate, self.limits, self.writes = gate, gate.limits, 0

    async def write(self, verb: Callable[[Rows], T]) -> T:
        self.writes += 1
        return await self._gate.write(verb)

    def read(self, question: Callable[[Rows], T]) -> T:
        return self._gate.read(question)

    def durability(self) -> str:
        return self._gate.durability()


class Auditor:
    """``violated`` is called with every broken rule; ``healthy`` says whether a holder could renew all the time."""

    def __init__(
        self, gate: Looking, limits: Limits, premises: Premises, violated: Callable[[str], None],
        healthy: Callable[[RunId, str], bool],
    ) -> None:  # fmt: skip
        self._gate, self._limits, self._premises = gate, limits, premises
        self._violated, self._healthy = violated, healthy
        self.picture: Picture = NOTHING
        self._seen_writes = 0
        self.outcomes: dict[Life, Outcome] = {}
        self._reopened: set[Life] = set()
        self._generations: dict[RunId, int] = {}
        self._digests: dict[Life, str] = {}
        self._tries: dict[Life, list[int]] = {}
        self._events: dict[str, int] = {}
        self._cancels: set[Life] = set()
        self._spawned: dict[RunId, Life] = {}

    def look(self, question: Callable[[Rows], T]) -> T:
        """Ask the store something."""
        return self._gate.read(question)

    def was_reopened(self, run_id: str, incarnation: str) -> bool:
        return (RunId(run_id), incarnation) in self._reopened

    def disturbed(self, life: Life) -> bool:
        """Whether somebody meant it to end otherwise, or every process that took it died."""
        return life in self._reopened or life in self._cancels or self.outcomes[life].lost_worker

    def look_at_all(self) -> None:
        """Take a new picture without judging what led to it."""
        before, self.picture = self.picture, self.look(take)
        for run_id, run in self.picture.runs.items():
            self._ended(before.runs.get(run_id), run)

    def after(self, done: Executed) -> None:
        """Compare the store with what it was before this verb."""
        if self._gate.writes == self._seen_writes:
            return
        self._seen_writes = self._gate.writes
        before, self.picture = self.picture, self.look(take)
        after = self.picture
        for issue in changes(before, after, done.verb):
            self._violated(issue)
        handler = getattr(self, f"_after_{done.verb}", None)
        if handler is not None:
            handler(before, after, done)
        for run_id, run in after.runs.items():
            self._ended(before.runs.get(run_id), run)
        self._premises.after(before, after, done.verb, done.args, done.answer)

    def _after_submit(self, before: Picture, after: Picture, done: Executed) -> None:
        start, answer = done.args[0], done.answer
        if not isinstance(answer, Submitted):
            return
        life = (answer.run_id, answer.incarnation)
        if self._digests.setdefault(life, start.digest) != start.digest:
            self._violated(f"I20 {answer.run_id}: another payload was accepted under a used id")
        run = after.runs.get(answer.run_id)
        if run is None:
            self._violated(f"I20 {answer.run_id}: accepted and not there")

    def _after_claim(self, before: Picture, after: Picture, done: Executed) -> None:
        claims: list[Claim] = done.answer
        for claim in claims:
            run_id, life = claim.header.run_id, (claim.header.run_id, claim.header.incarnation)
            old, new = before.runs.get(run_id), after.runs[run_id].row
            if new.token != claim.token:
                self._violated(f"I1 {run_id}: the claim carries {claim.token}, the store has {new.token}")
            if old is not None and old.row.nonce == claim.token.nonce:
                continue
            if claim.token.generation <= self._generations.get(run_id, 0):
                self._violated(f"I5 {run_id}: generation {claim.token.generation} was given before")
            self._generations[run_id] = claim.token.generation
            tries = self._tries.setdefault(life, [0, 0])
            tries[0] += 1
            if old is not None and old.row.nonce is not None:
                tries[1] += 1
                if old.row.due is not None and old.row.due > after.now:
                    self._violated(f"I1 {run_id}: taken from {old.row.nonce} before its lease was over")
                if after.grace_until_ms > after.now:
                    self._violated(f"I17 {run_id}: taken from {old.row.nonce} in a time of grace")
                if self._healthy(run_id, old.row.nonce):
                    self._violated(f"I17 {run_id}: taken from {old.row.nonce}, which is alive and well")
            if tries[0] > self._limits.tries_max or tries[1] > self._limits.lost_max:
                self._violated(f"I16 {run_id}: {tries[0]} claims without progress, {tries[1]} takeovers")
            if old is not None and old.row.cancel:
                self._violated(f"I13 {run_id}: claimed although its cancel is promised")

    def _after_settle(self, before: Picture, after: Picture, done: Executed) -> None:
        step: Step = done.args[0]
        for issue in of_settle(before, after, step, done.answer):
            self._violated(issue)
        new = after.runs.get(step.run_id)
        if not isinstance(done.answer, Settled) or new is None:
            return
        life = (step.run_id, step.token.incarnation)
        for spawn in step.spawns:
            if self._spawned.setdefault(spawn.submission.run_id, life) != life:
                self._violated(f"I12 {spawn.submission.run_id} belongs to two lives of {step.run_id}")
        tries = self._tries.setdefault(life, [0, 0])
        if step.progress or isinstance(step.next, Park):
            tries[0] = 0
        if isinstance(step.next, HandBack):
            tries[0] = max(0, tries[0] - 1)

    def _after_publish(self, before: Picture, after: Picture, done: Executed) -> None:
        self._published(done.args[0], done.answer.number)

    def _published(self, event_id: str, number: int) -> None:
        if self._events.setdefault(event_id, number) != number:
            self._violated(f"I9 event {event_id} has the numbers {self._events[event_id]} and {number}")

    def _after_prune(self, before: Picture, after: Picture, done: Executed) -> None:
        # An event that is past its retention is forgotten, and so is its id.
        self._events.clear()

    def _after_wake(self, before: Picture, after: Picture, done: Executed) -> None:
        run_id, wait_id, data = done.args[:3]
        if isinstance(done.answer, Woken):
            self._woken(before, after, run_id, wait_id, data)

    def _woken(self, before: Picture, after: Picture, run_id: RunId, wait_id: WaitId, data: bytes) -> None:
        old, new = before.runs.get(run_id), after.runs[run_id]
        if old is None or old.row.status in TERMINAL or old.row.cancel:
            self._violated(f"I2 {run_id}: woken after its end was decided")
        wait = new.waits.get(wait_id)
        mail = [m for m in new.mailbox if m.wait_id == wait_id and m.kind == "wake" and m.data == data]
        if wait is None or wait.by is None or wait.by.digest != digest_of(data) or not mail:
            self._violated(f"I2 {run_id}: the answer of {wait_id!r} was accepted and is not there")

    def _after_cancel(self, before: Picture, after: Picture, done: Executed) -> None:
        run = after.runs.get(done.args[0])
        if run is None or isinstance(done.answer, AlreadyTerminal):
            return
        if isinstance(done.answer, Cancelled) and run.row.status != "cancelled":
            self._violated(f"I13 {run.row.run_id}: answered Cancelled, is {run.row.status}")
        if isinstance(done.answer, CancelRequested) and not (run.row.cancel and run.row.nonce is not None):
            self._violated(f"I13 {run.row.run_id}: a cancel was promised that nobody has to keep")
        self._cancels.add((run.row.run_id, run.row.incarnation))

    def _after_reopen(self, before: Picture, after: Picture, done: Executed) -> None:
        if isinstance(done.answer, Reopened):
            row = after.runs[done.args[0]].row
            self._reopened.add((row.run_id, row.incarnation))
            self._tries[row.run_id, row.incarnation] = [0, 0]

    def _after_delete(self, before: Picture, after: Picture, done: Executed) -> None:
        if isinstance(done.answer, Deleted) and done.args[0] in after.runs:
            self._violated(f"I6 {done.args[0]}: deleted and still there")

    def _after_decide(self, before: Picture, after: Picture, done: Executed) -> None:
        if type(done.answer).__name__ == "Decided":
            task = self.look(lambda rows: rows.tasks.load(done.args[0]))
            if task is not None and after.runs[task.run_id].waits[task.wait_id].state == "open":
                self._violated(f"I2 {task.run_id}: task {task.task_id} is decided and its wait is open")

    def _after_accept(self, before: Picture, after: Picture, done: Executed) -> None:
        gone = [m for m in before.messages if m not in after.messages]
        if gone != [a.message_id for a in done.answer]:
            self._violated(f"I11 messages {gone} left the inbox, {done.answer} were accepted")
        for accepted in done.answer:
            outcome = accepted.outcome
            if isinstance(outcome, EventAccepted):
                self._published(outcome.published.event_id, outcome.published.number)
            for issue in of_message(before, after, outcome, self._premises.sent.get(accepted.message_id, {})):
                self._violated(issue)

    def _ended(self, old: RunPicture | None, new: RunPicture) -> None:
        row = new.row
        life = (row.run_id, row.incarnation)
        if row.status not in TERMINAL:
            if life in self._tries and self._tries[life] != [row.tries, row.lost]:
                self._violated(f"I16 {row.run_id}: tries and losses are {row.tries, row.lost}, not {self._tries[life]}")
                self._tries[life] = [row.tries, row.lost]
            return
        if old is not None and old.row.status in TERMINAL and old.row.incarnation == row.incarnation:
            return
        if life in self._cancels and row.status != "cancelled":
            self._violated(f"I13 {row.run_id}: a cancel was accepted, the run ended {row.status}")
        outcome = self.look(lambda rows: rows.record.outcome(rows.runs.at(row.rid)))
        output = None if outcome.output is None else decode(outcome.output)
        error = None if outcome.error is None else decode(outcome.error)
        self.outcomes.setdefault(life, Outcome(row.status, output, error, outcome.lost_worker))
