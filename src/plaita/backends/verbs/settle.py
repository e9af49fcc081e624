"""settle: the only write of a holder. Everything is validated first; then the step is written as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plaita.backends.rows import OutRow, Rows, RunRow, WaitRow
from plaita.backends.verbs.finish import Ending, close, finish
from plaita.backends.verbs.match import awaits_verdict, match, withdraw
from plaita.backends.verbs.quota import free
from plaita.base.clock import new_id
from plaita.ports.runs import (
    Arm,
    Block,
    Closing,
    Dup,
    End,
    HandBack,
    Keep,
    Mismatch,
    Park,
    SettleAnswer,
    Settled,
    Spawn,
    Stale,
    Step,
    WaitConflict,
)  # fmt: skip
from plaita.ports.tasks import Task
from plaita.ports.values import By, Mail, WaitId

TASK_ID_LENGTH = 10


@dataclass(frozen=True, slots=True)
class Reading:
    """What a step says of its mailbox: read up to ``ack``, and of the candidates which events are taken, by wait."""

    ack: int
    accepted: Mapping[WaitId, int]


def settle(rows: Rows, step: Step) -> SettleAnswer:
    """Accept the next step of the current holder, recognise a repeated one, refuse all others."""
    run = rows.runs.load(step.run_id)
    if run is None:
        return Stale(None, None)
    refusal = _repeated(rows, run, step) or _fenced(run, step)
    if refusal is not None:
        return refusal
    if run.cancel:
        return _end_cancelled(rows, run, step)
    ends = isinstance(step.next, End)
    closes = _with_cuts(rows, run, step) if ends and run.armed else step.closes
    accepted = {closing.wait_id: closing.event for closing in closes if closing.why == "event"}
    for closing in closes:
        if not _may_close(rows, run, closing, Reading(step.ack, accepted)):
            return WaitConflict(closing.wait_id)
    _accept(rows, run, step)
    if step.progress or isinstance(step.next, Park | Block):
        run.tries = 0
    if not ends or (isinstance(step.next, End) and step.next.status == "error"):
        rows.record.put_frames(run, step.delta)
    # The history tells what the step came from, the step, and what it leaves behind.
    cuts = [closing for closing in closes if closing.why == "cut"]
    _close(rows, run, [closing for closing in closes if closing.why != "cut"])
    _tell(rows, run, step)
    _close(rows, run, cuts)
    if run.unread:
        _read_mailbox(rows, run, Reading(step.ack, accepted))
    for arm in step.arms:
        _arm(rows, run, arm)
    for spawn in step.spawns:
        _spawn(rows, run, spawn)
    return _go_on(rows, run, step)


def _repeated(rows: Rows, run: RunRow, step: Step) -> Dup | Mismatch | None:
    token = step.token
    if (
        step.seq != run.seq
        or run.last_nonce != token.nonce
        or run.last_generation != token.generation
        or run.incarnation != token.incarnation
    ):
        return None
    if run.last_digest != step.digest:
        return Mismatch(step.seq)
    return Dup(step.seq, run.held_under(token), bool(run.cancel), _mailbox(rows, run), rows.now)


def _fenced(run: RunRow, step: Step) -> Stale | None:
    if run.held_under(step.token) and run.status == "running" and step.seq == run.seq + 1:
        return None
    return Stale(run.token, run.seq)


def _end_cancelled(rows: Rows, run: RunRow, step: Step) -> Settled:
    """A promised cancel wins over whatever the holder decided; its history is kept."""
    _accept(rows, run, step)
    _tell(rows, run, step)
    finish(rows, run, Ending("cancelled"))
    return Settled(step.seq, False, True, (), rows.now)


def _accept(rows: Rows, run: RunRow, step: Step) -> None:
    run.seq = step.seq
    run.last_nonce, run.last_generation, run.last_digest = step.token.nonce, step.token.generation, step.digest
    run.retry = None
    # Given back without a change, by a process that could not load it, a reopened run is still to be reopened.
    run.reopened = run.reopened and not step.delta and not isinstance(step.next, End)


def _tell(rows: Rows, run: RunRow, step: Step) -> None:
    if step.history:
        rows.record.log(run, step.history)


def _with_cuts(rows: Rows, run: RunRow, step: Step) -> Sequence[Closing]:
    """The end cuts every wait that is left."""
    named = {c.wait_id for c in step.closes}
    left = [w.wait_id for w in rows.waits.of(run).values() if w.state != "closed" and w.wait_id not in named]
    return (*step.closes, *(Closing(wait_id, "cut") for wait_id in left))


def _may_close(rows: Rows, run: RunRow, closing: Closing, reading: Reading) -> bool:
    """Compare-and-set of one wait. An unanswered close first looks whether an event was published for it, and whether
    one is still on offer that may become its own."""
    wait = rows.waits.of(run).get(closing.wait_id)
    if wait is None:
        raise ValueError(f"run {run.run_id!r} has no wait {closing.wait_id!r}")
    if closing.why == "read":
        return wait.state == "resolved" and not _is_unread(rows, run, wait, reading.ack)
    if closing.why == "event":
        return wait.state == "open" and wait.cand == closing.event
    _refuse_read(rows, run, reading)
    match(rows, run, wait, reading.accepted)
    is_unanswered = wait.state == "open" and wait.cand is None
    return is_unanswered and not awaits_verdict(rows, run, wait, accepted=reading.accepted)


def _refuse_read(rows: Rows, run: RunRow, reading: Reading) -> None:
    """Candidates that were read and that no close of the step takes are refused."""
    for mail in rows.waits.mailbox(run) if run.unread else ():
        is_refused = mail.kind == "candidate" and reading.accepted.get(mail.wait_id) != mail.event
        if mail.number <= reading.ack and is_refused:
            wait = rows.waits.of(run)[mail.wait_id]
            if wait.cand == mail.event:
                withdraw(rows, run, wait, refused=True)


def _is_unread(rows: Rows, run: RunRow, wait: WaitRow, ack: int) -> bool:
    """Whether the answer came after what the holder has read: then this is not the answer it means."""
    return any(m.number > ack and m.kind == "wake" and m.wait_id == wait.wait_id for m in rows.waits.mailbox(run))


def _close(rows: Rows, run: RunRow, closes: Sequence[Closing]) -> None:
    for closing in closes:
        close(rows, run, rows.waits.of(run)[closing.wait_id], _by(closing))


def _by(closing: Closing) -> By | None:
    match closing.why:
        case "read":
            return None
        case "event":
            return By("event", event=closing.event)
        case "timeout" | "cut" as why:
            return By(why)


def _read_mailbox(rows: Rows, run: RunRow, reading: Reading) -> None:
    """Entries up to ``ack`` are read. What was taken is on offer no more: others may have waited for that verdict."""
    _refuse_read(rows, run, reading)
    read = [m.number for m in rows.waits.mailbox(run) if m.number <= reading.ack]
    rows.waits.unpost(run, read)
    run.unread -= len(read)
    if reading.accepted:
        for wait in rows.waits.of(run).values():
            match(rows, run, wait)


def _arm(rows: Rows, run: RunRow, arm: Arm) -> None:
    if run.armed and arm.wait_id in rows.waits.of(run):
        raise ValueError(f"run {run.run_id!r} already had a wait {arm.wait_id!r}; a wait id is never used again")
    number = rows.events.next()
    task_id = None if arm.task is None else new_id()[:TASK_ID_LENGTH]
    wait = WaitRow(
        arm.wait_id, arm.kind, arm.node_id, arm.address, arm.event_type, arm.key, arm.by_filter, arm.reuse,
        number, number if arm.key is None else run.born, rows.now, arm.deadline_ms, task_id,
    )  # fmt: skip
    rows.waits.add(run, wait)
    run.armed += 1
    if arm.task is not None and task_id is not None:
        flow_id = rows.record.start(run).start.flow_id
        task = Task(
            task_id, run.run_id, arm.wait_id, flow_id, arm.node_id, arm.task, "open", 0, rows.now, arm.deadline_ms
        )  # fmt: skip
        rows.tasks.add(task)
    match(rows, run, wait)


def _spawn(rows: Rows, run: RunRow, spawn: Spawn) -> None:
    if spawn.wait_id is not None:
        wait = rows.waits.of(run)[spawn.wait_id]
        wait.child = spawn.submission.run_id
        rows.waits.save(run, wait)
    entry = OutRow(0, "spawn", run.run_id, run.incarnation, spawn.wait_id, submission=spawn.submission)
    rows.ledger.push(entry)


def _go_on(rows: Rows, run: RunRow, step: Step) -> Settled:
    """What comes next, judged after everything else is written: a park with mail becomes a keep."""
    match step.next:
        case End(status, output, error):
            finish(rows, run, Ending(status, output, error))
        case Park(due_ms, retry_ms) if not run.unread:
            _give_back(rows, run)
            if due_ms is None and run.status != "suspended":
                raise ValueError(
                    f"run {run.run_id!r} parks without a timer and without an open wait: nobody would look"
                )
            run.due, run.retry = due_ms, retry_ms
        case Block(reason):
            _give_back(rows, run)
            run.due, run.blocked, run.blocked_reason = None, True, reason
        case HandBack():
            run.nonce, run.due, run.tries = None, rows.now, max(0, run.tries - 1)
        case Keep() | Park():
            return Settled(step.seq, True, False, _mailbox(rows, run), rows.now)
    return Settled(step.seq, False, False, (), rows.now)


def _give_back(rows: Rows, run: RunRow) -> None:
    waiting = run.armed and any(w.state == "open" for w in rows.waits.of(run).values())
    run.nonce, run.status = None, "suspended" if waiting else "running"
    free(rows, run)


def _mailbox(rows: Rows, run: RunRow) -> tuple[Mail, ...]:
    return rows.waits.mailbox(run) if run.unread else ()
