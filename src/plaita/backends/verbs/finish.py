"""How a wait closes and a run ends, and the store's pulse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plaita.backends.limits import Limits
from plaita.backends.rows import OutRow, Pulse, Rows, RunRow, WaitRow
from plaita.backends.verbs.match import by_facts, close_task
from plaita.backends.verbs.quota import free
from plaita.base.json import encode
from plaita.ports.values import By, RunId

UNANSWERED = frozenset({"timeout", "cut", "cancel"})


def close(rows: Rows, run: RunRow, wait: WaitRow, by: By | None) -> None:
    """Close a wait; ``by`` ``None``: its answer was read. A child nobody waits for any more is cancelled."""
    if by is not None:
        wait.by = by
        if by.kind in UNANSWERED and wait.child is not None:
            rows.ledger.push(OutRow(0, "cancel", RunId(wait.child)))
        rows.record.log(
            run, [encode({"event": "wait_closed", "wait": wait.wait_id, "node": wait.address, "by": by_facts(by)})]
        )
    wait.state, wait.cand = "closed", None
    rows.waits.save(run, wait)
    close_task(rows, wait)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ends; ``output`` and ``error`` are JSON bytes."""

    status: Literal["completed", "error", "cancelled"]
    output: bytes | None = None
    error: bytes | None = None
    lost_worker: bool = False
    actor: str = ""


def finish(rows: Rows, run: RunRow, ending: Ending) -> None:
    """The only way into a terminal state: claim, due, waits, mailbox, slot and queue entry go in the same step."""
    if run.armed:
        for wait in rows.waits.of(run).values():
            if wait.state != "closed":
                close(rows, run, wait, By("cancel") if wait.state == "open" else None)
    _empty_mailbox(rows, run)
    run.status, run.nonce, run.due, run.ended = ending.status, None, None, rows.now
    run.retry, run.blocked, run.blocked_reason = None, False, ""
    free(rows, run)
    outcome = rows.record.outcome(run)
    outcome.output, outcome.error, outcome.lost_worker = ending.output, ending.error, ending.lost_worker
    rows.record.save_outcome(run, outcome)
    if ending.status != "error":
        rows.record.drop_frames(run)
        rows.waits.forget_consumed(run)
    rows.record.log(run, [_entry(ending)])
    parent = rows.record.parent(run)
    if parent is not None:
        answer = child_answer(run.run_id, ending.status, ending.output, ending.error)
        rows.ledger.push(OutRow(0, "wake", parent.run_id, parent.incarnation, parent.wait_id, data=answer))


def child_answer(run_id: RunId, status: str, output: bytes | None = None, error: bytes | None = None) -> bytes:
    """What a parent is told: ``{"run_id", "status", "output", "error"}``; the status may be a refusal of the start."""
    parts = [encode({"run_id": run_id, "status": status})[:-1], b',"output":', output or b"null"]
    return b"".join([*parts, b',"error":', error or b"null", b"}"])


def contact(rows: Rows) -> int:
    """The pulse: after a silence, or a clock that went back, nobody takes over for one grace. Answers its end.

    A contact within a quarter of the gap after the last one is not written: it could not change what the gap says.
    """
    plan = rows.limits.lease
    pulse = rows.ledger.pulse()
    silence = rows.now - pulse.contact_ms
    if 0 <= silence <= plan.gap_ms // 4:
        return pulse.grace_until_ms
    if pulse.contact_ms and (silence > plan.gap_ms or silence < 0):
        pulse.grace_until_ms = rows.now + plan.grace_ms
    if silence < 0:
        _bring_forward(rows, latest_time(rows.limits, pulse))
    pulse.contact_ms = rows.now
    rows.ledger.save_pulse(pulse)
    return pulse.grace_until_ms


def latest_time(limits: Limits, pulse: Pulse) -> int:
    """The latest time the store's clock can have shown: ``contact`` is written at least that often."""
    return pulse.contact_ms + limits.lease.gap_ms // 4


def _bring_forward(rows: Rows, latest: int) -> None:
    """The clock went back: what was due by the old time is due now, and no lease ends later than one from now on.

    Else woken runs, and runs of a dead holder, would wait until the old time comes again. A timer that the clock has
    still to reach costs a claim that finds nothing to do; a start never comes too early.
    """
    lease_ms = rows.limits.lease.lease_ms
    for run in rows.runs.due_within(rows.now, latest + lease_ms):
        assert run.due is not None
        if run.nonce is not None:
            run.due = min(run.due, rows.now + lease_ms)
        elif run.due <= latest:
            not_before = rows.record.start(run).start.not_before_ms if run.status == "queued" else None
            run.due = max(rows.now, not_before or 0)


def _empty_mailbox(rows: Rows, run: RunRow) -> None:
    if run.unread:
        rows.waits.unpost(run, [m.number for m in rows.waits.mailbox(run)])
        run.unread = 0


def _entry(ending: Ending) -> bytes:
    facts: dict[str, object] = {"event": "run_ended", "status": ending.status}
    if ending.lost_worker:
        facts["reason"] = "worker_lost"
    if ending.actor:
        facts["actor"] = ending.actor
    return encode(facts) if ending.error is None else encode(facts)[:-1] + b',"error":' + ending.error + b"}"
