"""Counts which situations the answers of the store prove to have happened."""

from __future__ import annotations

from typing import Any

from plaita.backends.rows import WaitRow
from plaita.ports.inbox import DeadLettered, Resumed
from plaita.ports.runs import (
    AlreadyResolved,
    CancelRequested,
    Dup,
    HandBack,
    Lost,
    NoSuchWait,
    Park,
    Settled,
    Stale,
    Step,
    SubmitConflict,
    Submitted,
    Tombstoned,
    WaitConflict,
    Woken,
)  # fmt: skip
from plaita.ports.tasks import Decided, Recorded
from plaita.ports.values import TERMINAL
from plaita.testing.simulation.coverage import Coverage
from plaita.testing.simulation.picture import Picture, RunPicture

_SETTLE = {Dup: "Dup answered", Stale: "Stale answered", WaitConflict: "Conflict answered"}
_WAKE = {Woken: "wake accepted", AlreadyResolved: "wake came second", NoSuchWait: "wake without a wait"}
_SUBMIT = {SubmitConflict: "start in conflict", Tombstoned: "id refused after delete"}
_ENDED = {"completed": "run completed", "error": "run failed", "cancelled": "run cancelled"}


class Premises:
    """``sent`` holds the bodies of offered messages by id."""

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage
        self.sent: dict[str, dict[str, Any]] = {}

    def after(self, before: Picture, after: Picture, verb: str, args: tuple[Any, ...], answer: Any) -> None:
        """One verb was carried out."""
        handler = getattr(self, f"_of_{verb}", None)
        if handler is not None:
            handler(before, after, args, answer)
        for run_id, new in after.runs.items():
            old = before.runs.get(run_id)
            same = old is not None and old.row.incarnation == new.row.incarnation
            self._of_run(old if same else None, new, verb)

    def _of_run(self, old: RunPicture | None, new: RunPicture, verb: str) -> None:
        saw, row = self._coverage.saw, new.row
        if row.parked and not (old and old.row.parked):
            saw("waited for a slot")
        if old is None:
            if "." in row.run_id:
                saw("detached run")
            return
        if old.row.parked and row.slot:
            saw("slot handed on")
        if row.status in TERMINAL and old.row.status not in TERMINAL:
            saw(_ENDED[row.status])
            if verb == "claim" and row.status == "error":
                saw("worker lost")
        if row.retry is not None and old.row.retry is None:
            saw("backed off")
        for wait_id, wait in new.waits.items():
            self._of_wait(old.waits.get(wait_id), wait)

    def _of_wait(self, was: WaitRow | None, wait: WaitRow) -> None:
        saw, by = self._coverage.saw, wait.by.kind if wait.by is not None else ""
        if was is None:
            if wait.cand is not None:
                saw("candidate offered")
            elif by == "event":
                saw("event consumed from the log")
            return
        if wait.cand is not None and was.cand is None:
            saw("candidate offered")
        if was.cand is not None and wait.low > was.low:
            saw("candidate refused")
        if was.cand is not None and was.by is None and by == "hand":
            saw("candidate overtaken")
        if was.by is None and by == "timeout":
            saw("wait timed out")

    def _of_claim(self, before: Picture, after: Picture, args: tuple[Any, ...], answer: Any) -> None:
        for claim in answer:
            old = before.runs.get(claim.header.run_id)
            if old is not None and old.row.nonce == claim.token.nonce:
                self._coverage.saw("claim answered what it held")
            elif old is not None and old.row.nonce is not None:
                self._coverage.saw("takeover")
            elif old is not None and old.row.status == "suspended" and not old.row.unread:
                self._coverage.saw("timer fired")
        if after.grace_until_ms > after.now:
            over = [r for r in after.runs.values() if r.row.nonce is not None and (r.row.due or 0) <= after.now]
            if over:
                self._coverage.saw("takeover refused in grace")

    def _of_settle(self, before: Picture, after: Picture, args: tuple[Any, ...], answer: Any) -> None:
        step: Step = args[0]
        saw = self._coverage.saw
        if not isinstance(answer, Settled):
            if type(answer) in _SETTLE:
                saw(_SETTLE[type(answer)])
            return
        saw("settle accepted")
        if answer.cancel:
            saw("settle after a cancel")
        elif isinstance(step.next, Park) and answer.held:
            saw("park became keep")
        elif isinstance(step.next, HandBack):
            saw("handed back")

    def _of_renew(self, before: Picture, after: Picture, args: tuple[Any, ...], answer: Any) -> None:
        if any(isinstance(one, Lost) for one in answer):
            self._coverage.saw("Lost answered")

    def _of_wake(self, before: Picture, after: Picture, args: tuple[Any, ...], answer: Any) -> None:
        self._coverage.saw(_WAKE[type(answer)])
        old = before.runs.get(args[0])
        if isinstance(answer, Woken) and old is not None and old.row.nonce is not None:
            self._coverage.saw("wake while held")

    def _of_cancel(self, before: Picture, after: Picture, args: tuple[Any, ...], answer: Any) -> None:
        if isinstance(answer, CancelRequested):
            self._coverage.saw("cancel with a holder")
        elif type(answer).__name__ == "Cancelled":
            self._coverage.saw("cancel without a holder")

    def _of_submit(self, before: Picture, after: Picture, args: tuple[Any, ...], answer: Any) -> None:
        if type(answer) in _SUBMIT:
            self._coverage.saw(_SUBMIT[type(answer)])
        elif isinstance(answer, Submitted) and answer.deduplicated:
            self._coverage.saw("start deduplicated")
        elif after.runs[answer.run_id].row.generation > 0:
            self._coverage.saw("id used again after delete")

    def _of_publish(self, before: Picture, after: Picture, args: tuple[Any, ...], answer: Any) -> None:
        if answer.duplicate:
            self._coverage.saw("event published twice")
        if answer.pending:
            self._coverage.saw("fan-out beyond its first chunk")

    def _of_decide(self, before: Picture, after: Picture, args: tuple[Any, ...], answer: Any) -> None:
        if isinstance(answer, Decided):
            self._coverage.saw("task decided")
        else:
            self._coverage.saw("vote recorded" if isinstance(answer, Recorded) else "vote refused")

    def _of_reopen(self, before: Picture, after: Picture, args: tuple[Any, ...], answer: Any) -> None:
        if type(answer).__name__ == "Reopened":
            self._coverage.saw("reopened")

    def _of_delete(self, before: Picture, after: Picture, args: tuple[Any, ...], answer: Any) -> None:
        if type(answer).__name__ == "Deleted":
            self._coverage.saw("run deleted")

    def _of_accept(self, before: Picture, after: Picture, args: tuple[Any, ...], answer: Any) -> None:
        for accepted in answer:
            body = self.sent.get(accepted.message_id, {})
            live = before.runs.get(body.get("execution_id", ""))
            if live is not None and live.row.status not in TERMINAL:
                self._coverage.saw("message for a live run")
            match accepted.outcome:
                case DeadLettered(reason):
                    self._coverage.saw("message too old" if reason == "too_old" else "message dead")
                case Resumed(NoSuchWait() | AlreadyResolved()):
                    self._coverage.saw("wake came second")
                case _:
                    self._coverage.saw("message accepted")
