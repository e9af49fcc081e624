"""The outbox: what a verb promised to do to other runs, done by whoever claims next. Each entry is idempotent."""

from __future__ import annotations

from dataclasses import replace

from plaita.backends.rows import OutRow, Rows, RunRow
from plaita.backends.verbs.cancel import cancel
from plaita.backends.verbs.finish import child_answer
from plaita.backends.verbs.match import digest_of
from plaita.backends.verbs.publish import fan_out
from plaita.backends.verbs.submit import submit
from plaita.backends.verbs.wake import answer
from plaita.ports.runs import SubmitConflict, Submitted
from plaita.ports.values import By, Parent


def pump(rows: Rows, entries: int) -> int:
    """Carry on up to so many entries, one chunk each; answers how many there were."""
    for done in range(entries):
        entry = rows.ledger.first()
        if entry is None:
            return done
        _carry_on(rows, entry)
    return entries


def _carry_on(rows: Rows, entry: OutRow) -> None:
    if entry.kind == "event":
        cursor, _, _ = fan_out(rows, rows.events.at(entry.event), entry.cursor)
        if cursor is not None:
            rows.ledger.move(entry.number, cursor)
            return
    rows.ledger.pop(entry.number)
    if entry.kind == "cancel":
        cancel(rows, entry.run_id, "parent")
    elif entry.kind == "wake":
        _tell_parent(rows, entry, entry.data)
    elif entry.kind == "spawn":
        _spawn(rows, entry)


def _spawn(rows: Rows, entry: OutRow) -> None:
    start = entry.submission
    assert start is not None
    if entry.wait_id is None:
        submit(rows, start, "")
    elif _waiting(rows, entry) is not None:
        parent = Parent(entry.run_id, entry.incarnation, entry.wait_id)
        got = submit(rows, replace(start, parent=parent), "")
        if not isinstance(got, Submitted):
            refusal = "conflict" if isinstance(got, SubmitConflict) else "tombstoned"
            _tell_parent(rows, entry, child_answer(start.run_id, refusal))


def _tell_parent(rows: Rows, entry: OutRow, data: bytes) -> None:
    parent = _waiting(rows, entry)
    if parent is not None and entry.wait_id is not None:
        answer(rows, parent, entry.wait_id, data, By("child", digest=digest_of(data)))


def _waiting(rows: Rows, entry: OutRow) -> RunRow | None:
    """The parent, if it is the same incarnation and still waits: no orphan, no wake otherwise."""
    run = rows.runs.load(entry.run_id)
    if run is None or run.incarnation != entry.incarnation or entry.wait_id is None or not run.armed:
        return None
    wait = rows.waits.of(run).get(entry.wait_id)
    return run if wait is not None and wait.state == "open" else None
