"""The one matching step between the event log and a wait, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha1
from types import MappingProxyType
from typing import Final, Literal

from plaita.backends.rows import Rows, RunRow, WaitRow
from plaita.backends.verbs.quota import RESUME, runnable
from plaita.base.json import encode
from plaita.ports.values import By, Mail, WaitId

NONE: Final[Mapping[WaitId, int]] = MappingProxyType({})


def match(
    rows: Rows, run: RunRow, wait: WaitRow, accepted: Mapping[WaitId, int] = NONE
) -> Literal["resolved", "offered"] | None:
    """Give an open event wait the lowest event of its window that this run has not consumed.

    Called when a wait is armed, when a fan-out reaches it, before it is closed unanswered and when a candidate is
    withdrawn. A wait whose filter the machine judges gets the event as a candidate, one at a time and in their order:
    what is on offer elsewhere is judged there first, unless it is ``accepted`` there, by wait.
    """
    if wait.kind != "event" or wait.state != "open" or wait.cand is not None or run.cancel:
        return None
    number = rows.events.lowest(wait.event_type, wait.key, wait.low, None if wait.reuse else run)
    if number is None or (wait.by_filter and awaits_verdict(rows, run, wait, number, accepted)):
        return None
    rows.waits.consume(run, number)
    data = rows.events.at(number).data
    if wait.by_filter:
        wait.cand = number
        rows.waits.save(run, wait)
        post(rows, run, Posting("candidate", wait, data, number))
        return "offered"
    resolve(rows, run, wait, By("event", event=number), data)
    return "resolved"


def awaits_verdict(
    rows: Rows, run: RunRow, wait: WaitRow, below: int | None = None, accepted: Mapping[WaitId, int] = NONE
) -> bool:
    """Whether an event of the wait's window is on offer to another wait: refused there, it is for this one."""
    if wait.reuse or not run.unread:
        return False
    waits = rows.waits.of(run)
    for mail in rows.waits.mailbox(run):
        is_offer = mail.kind == "candidate" and mail.wait_id != wait.wait_id and mail.wait_id not in accepted
        if is_offer and mail.event > wait.low and (below is None or mail.event < below):
            event = rows.events.at(mail.event)
            is_for_it = event.event_type == wait.event_type and wait.key in (None, event.key)
            if is_for_it and waits[mail.wait_id].cand == mail.event:
                return True
    return False


def withdraw(rows: Rows, run: RunRow, wait: WaitRow, *, refused: bool) -> None:
    """A candidate is refused or overtaken: the event is free for the run's other waits, the window moves past it."""
    number, wait.cand = wait.cand, None
    assert number is not None
    if refused:
        wait.low = max(wait.low, number)
    rows.waits.save(run, wait)
    waits = rows.waits.of(run)
    # A wait that may reuse events shares them: what another wait took or is offered stays consumed.
    if not any(w.cand == number or (w.by and w.by.event == number) for w in waits.values()):
        rows.waits.release(run, number)
    _unpost_candidate(rows, run, wait)
    for other in waits.values():
        if other is not wait or refused:
            match(rows, run, other)


def resolve(rows: Rows, run: RunRow, wait: WaitRow, by: By, data: bytes) -> None:
    """The wait is answered: into the mailbox, and the run becomes due."""
    wait.state, wait.by = "resolved", by
    rows.waits.save(run, wait)
    close_task(rows, wait)
    rows.record.log(
        run, [encode({"event": "wait_resolved", "wait": wait.wait_id, "node": wait.address, "by": by_facts(by)})]
    )
    post(rows, run, Posting("wake", wait, data, by.event))


def close_task(rows: Rows, wait: WaitRow) -> None:
    """A person is asked no longer."""
    if wait.task_id is not None:
        task = rows.tasks.load(wait.task_id)
        if task is not None and task.status == "open":
            rows.tasks.save(replace(task, status="closed"))


def digest_of(data: bytes) -> str:
    """What tells one answer from another. Every store can compute it."""
    return sha1(data, usedforsecurity=False).hexdigest()[:16]


def by_facts(by: By) -> dict[str, object]:
    """What resolved or closed a wait, for the history."""
    facts: dict[str, object] = {"kind": by.kind}
    if by.event:
        facts["event"] = by.event
    if by.actor:
        facts["actor"] = by.actor
    return facts


@dataclass(frozen=True, slots=True)
class Posting:
    """What a mailbox entry says, before it has its number."""

    kind: Literal["wake", "candidate", "timeout"]
    wait: WaitRow
    data: bytes
    event: int = 0


def post(rows: Rows, run: RunRow, posting: Posting) -> None:
    """Something the holder is to read; an unheld run becomes due."""
    run.boxn += 1
    run.unread += 1
    rows.waits.post(run, Mail(run.boxn, posting.kind, posting.wait.wait_id, posting.data, posting.event))
    runnable(rows, run, RESUME)


def _unpost_candidate(rows: Rows, run: RunRow, wait: WaitRow) -> None:
    numbers = [m.number for m in rows.waits.mailbox(run) if m.kind == "candidate" and m.wait_id == wait.wait_id]
    rows.waits.unpost(run, numbers)
    run.unread -= len(numbers)
