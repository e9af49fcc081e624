"""What may change from one picture of a store to the next, whatever was called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from plaita.backends.rows import RunRow, WaitRow
from plaita.ports.inbox import DeadLettered
from plaita.ports.runs import End, HandBack, Park, Settled, Step
from plaita.ports.values import TERMINAL, RunId, WaitId
from plaita.testing.simulation.picture import Picture, RunPicture


def changes(before: Picture, after: Picture, verb: str) -> Iterator[str]:
    """Every rule of the protocol that this step breaks, in words."""
    yield from after.issues
    for run_id, old in before.runs.items():
        new = after.runs.get(run_id)
        if new is None or new.row.incarnation != old.row.incarnation:
            if old.row.status not in TERMINAL:
                yield f"I6 {run_id}: a live run was removed by {verb}"
        else:
            yield from _of_row(old, new, verb)
            yield from _of_waits(old, new)
    for run_id, new in after.runs.items():
        yield from _of_state(run_id, new)


def _of_row(old: RunPicture, new: RunPicture, verb: str) -> Iterator[str]:
    a, b = old.row, new.row
    if b.generation < a.generation or b.seq not in (a.seq, a.seq + 1):
        yield f"I5 {a.run_id}: generation {a.generation} to {b.generation}, seq {a.seq} to {b.seq}"
    if b.seq != a.seq and verb != "settle":
        yield f"I5 {a.run_id}: seq moved by {verb}"
    changed = a.status in TERMINAL and (a, old.waits) != (b, new.waits)
    if changed and (verb != "reopen" or a.status != "error"):
        yield f"I6 {a.run_id}: the ended run was changed by {verb}"
    if a.cancel and b.status in ("completed", "error"):
        yield f"I13 {a.run_id}: a cancel was promised, the run is {b.status}"
    if b.boxn < a.boxn:
        yield f"I3 {a.run_id}: mailbox numbers went back"
    is_held = a.nonce is not None and (a.nonce, a.generation) == (b.nonce, b.generation)
    if is_held and a.due != b.due and verb not in _LEASES:
        yield f"I4 {a.run_id}: the lease was moved by {verb}"


_LEASES = frozenset({"claim", "renew", "release"})


def _of_waits(old: RunPicture, new: RunPicture) -> Iterator[str]:
    run_id = old.row.run_id
    for wait_id, x in old.waits.items():
        y = new.waits.get(wait_id)
        if y is None or y.arm != x.arm:
            yield f"I3 {run_id}: wait id {wait_id!r} was used again or is gone"
        elif (x.state == "closed" and (y.state, y.by) != (x.state, x.by)) or (
            x.state == "resolved" and (y.state == "open" or (y.by != x.by))
        ):
            yield f"I3 {run_id}: wait {wait_id!r} went from {x.state} by {x.by} to {y.state} by {y.by}"
        elif x.state == "open" and wait_id in old.missed and y.by is not None and y.by.kind in ("timeout", "cut"):
            yield f"I10 {run_id}: wait {wait_id!r} was closed although event {old.missed[wait_id]} is for it"


def _of_state(run_id: RunId, run: RunPicture) -> Iterator[str]:
    row, waits = run.row, run.waits.values()
    if row.status in TERMINAL:
        kept = [w.wait_id for w in waits if w.state != "closed"]
        if row.nonce is not None or row.due is not None or row.slot or row.parked or row.unread or kept:
            yield f"I6 {run_id}: the ended run keeps claim, due, slot, mailbox or waits {kept}"
    taken = [w.by.event for w in waits if w.by is not None and w.by.kind == "event" and not w.reuse]
    if len(taken) != len(set(taken)):
        yield f"I8 {run_id}: one event resolved two waits"
    for wait in waits:
        if wait.by is not None and wait.by.kind == "event" and wait.by.event <= _window(row, wait):
            yield f"I8 {run_id}: event {wait.by.event} is outside the window of wait {wait.wait_id!r}"
    if row.cancel and any(w.state == "open" for w in waits):
        yield f"I13 {run_id}: a cancel is promised and a wait is still open"


def _window(row: RunRow, wait: WaitRow) -> int:
    return wait.arm if wait.key is None else row.born


def of_settle(before: Picture, after: Picture, step: Step, answer: object) -> Iterator[str]:
    """What an accepted settle must have been, and must have left."""
    old = before.runs.get(step.run_id)
    if not isinstance(answer, Settled):
        if old is not None and old.row != _unread(after, step.run_id, old) and type(answer).__name__ != "WaitConflict":
            yield f"I1 {step.run_id}: a settle answered {type(answer).__name__} changed the run"
        return
    if old is None or not old.row.held_under(step.token) or step.seq != old.row.seq + 1:
        held = None if old is None else (old.row.token, old.row.seq)
        yield f"I1 {step.run_id}: settle {step.seq} of {step.token} was accepted, the store had {held}"
        return
    new = after.runs[step.run_id].row
    if answer.held != (new.nonce is not None):
        yield f"I4 {step.run_id}: the settle says held={answer.held}, the run is held by {new.nonce}"
    if isinstance(step.next, Park) and not answer.held and new.slot and not old.row.cancel:
        yield f"I15 {step.run_id}: it is parked and keeps its slot"
    if not old.row.cancel and after.outbox.count("spawn") - before.outbox.count("spawn") != len(step.spawns):
        yield f"L2 {step.run_id}: {len(step.spawns)} runs were to be started, the outbox is {after.outbox}"
    if isinstance(step.next, HandBack) and new.nonce is not None and not old.row.cancel:
        yield f"I4 {step.run_id}: handed back and still held"
    if isinstance(step.next, End) and not old.row.cancel:
        named = {c.wait_id for c in step.closes if c.why == "read"}
        unread = [w.wait_id for w in old.waits.values() if w.state == "resolved" and w.wait_id not in named]
        if unread and step.next.status != "cancelled":
            yield f"I2 {step.run_id}: it ended with {step.next.status} and never read the answers of {unread}"
    for closing in step.closes:
        wait = old.waits.get(closing.wait_id)
        wanted = "resolved" if closing.why == "read" else "open"
        if not old.row.cancel and (wait is None or wait.state != wanted):
            yield f"I3 {step.run_id}: {closing} was accepted, the wait was {wait and wait.state}"


def _unread(after: Picture, run_id: RunId, old: RunPicture) -> RunRow:
    new = after.runs.get(run_id)
    return old.row if new is None else replace(new.row)


def of_message(before: Picture, after: Picture, outcome: object, body: dict[str, Any]) -> Iterator[str]:
    """What an accepted message must have done; ``body`` is what was sent."""
    run_id = RunId(str(body.get("execution_id", "")))
    old, new = before.runs.get(run_id), after.runs.get(run_id)
    live = old is not None and old.row.status not in TERMINAL
    if isinstance(outcome, DeadLettered):
        # A message before it in the same portion may have ended the run.
        if (
            live
            and new is not None
            and new.row.status not in TERMINAL
            and outcome.reason in ("no_run", "too_old", "tombstoned")
        ):
            yield f"I11 a dead letter ({outcome.reason}) for the live run {run_id}: {body}"
        return
    if body.get("type") == "start" and new is None:
        yield f"I11 a start was accepted and {run_id} is not there"
    if old is None or new is None or not live or old.row.cancel:
        return
    if body.get("type") == "cancel" and not (new.row.cancel or new.row.status in TERMINAL):
        yield f"I11 a cancel was accepted without effect on {run_id}"
    was, now = (run.waits.get(WaitId(str(body.get("wait_id")))) for run in (old, new))
    if was is not None and was.state == "open" and (now is None or now.state == "open"):
        yield f"I11 an answer was accepted without effect on {run_id}"
