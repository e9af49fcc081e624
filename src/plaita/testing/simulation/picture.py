"""What a store holds at one moment, taken through the same rows the verbs use."""

from __future__ import annotations

from dataclasses import dataclass

from plaita.backends.audit import audit
from plaita.backends.rows import Rows, RunFilter, RunRow, WaitRow
from plaita.ports.values import Mail, RunId, WaitId

EVERYTHING = 10_000


@dataclass(frozen=True, slots=True)
class RunPicture:
    """A run with what hangs on it. ``missed``: open waits that an event in the log is for."""

    row: RunRow
    waits: dict[WaitId, WaitRow]
    mailbox: tuple[Mail, ...]
    missed: dict[WaitId, int]


@dataclass(frozen=True, slots=True)
class Picture:
    """``issues`` is what the store's own auditor says; ``sequence`` the last event number."""

    now: int
    runs: dict[RunId, RunPicture]
    queue: tuple[int, ...]
    outbox: tuple[str, ...]
    messages: tuple[str, ...]
    sequence: int
    grace_until_ms: int
    issues: tuple[str, ...]


NOTHING = Picture(0, {}, (), (), (), 0, 0, ())


def take(rows: Rows) -> Picture:
    """Read everything. The rows belong to this transaction alone."""
    runs = {run.run_id: _of_run(rows, run) for run in rows.runs.page(RunFilter(limit=EVERYTHING))}
    return Picture(
        rows.now,
        runs,
        tuple(rid for _, rid in rows.ledger.parked()),
        tuple(entry.kind for entry in rows.ledger.entries()),
        tuple(message.message_id for message in rows.messages.first(EVERYTHING)),
        rows.events.current(),
        rows.ledger.pulse().grace_until_ms,
        tuple(audit(rows)),
    )


def _of_run(rows: Rows, run: RunRow) -> RunPicture:
    waits = dict(rows.waits.of(run)) if run.armed else {}
    missed: dict[WaitId, int] = {}
    for wait in waits.values():
        if wait.kind == "event" and wait.state == "open" and wait.cand is None and not run.cancel:
            number = rows.events.lowest(wait.event_type, wait.key, wait.low, None if wait.reuse else run)
            if number is not None:
                missed[wait.wait_id] = number
    return RunPicture(run, waits, rows.waits.mailbox(run) if run.unread else (), missed)
