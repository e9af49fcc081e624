"""delete and prune: rows of ended runs go, their ids stay used."""

from __future__ import annotations

from plaita.backends.rows import Grave, Rows, RunRow
from plaita.ports.runs import Deleted, NoRun, NotTerminal
from plaita.ports.values import TERMINAL, RunId


def delete(rows: Rows, run_id: RunId) -> Deleted | NotTerminal | NoRun:
    """Only an ended run goes; the tombstone refuses late starts, the generation goes on growing."""
    run = rows.runs.load(run_id)
    if run is None:
        return NoRun(run_id)
    if run.status not in TERMINAL:
        return NotTerminal(run.status)
    _bury(rows, run)
    return Deleted(run_id)


def prune(rows: Rows, older_than_ms: int, limit: int) -> int:
    """One portion of runs that ended before that time, and events, dead letters and graves that are as old."""
    old = rows.runs.ended_before(older_than_ms, limit)
    for run in old:
        _bury(rows, run)
    rows.events.forget(older_than_ms)
    rows.messages.forget_dead(older_than_ms)
    rows.ledger.forget_graves(rows.now - rows.limits.generation_ms)
    return len(old)


def _bury(rows: Rows, run: RunRow) -> None:
    rows.ledger.bury(run.run_id, Grave(run.generation, rows.now))
    rows.runs.drop(run)
