"""delete and prune: rows of ended runs go, their ids stay used."""

from __future__ import annotations

from dataclasses import dataclass

from plaita.backends.limits import SPARED_MS
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


@dataclass(frozen=True, slots=True)
class Pruned:
    """A portion of what may go: how many runs went, and whether there may be more of anything."""

    runs: int
    more: bool


def prune(rows: Rows, older_than_ms: int, limit: int) -> Pruned:
    """One portion of runs that ended before that time, and events, dead letters and graves that are as old; when there
    are no more runs, a portion of the closures that nobody needs."""
    old = rows.runs.ended_before(older_than_ms, limit)
    for run in old:
        _bury(rows, run)
    rows.events.forget(older_than_ms)
    rows.messages.forget_dead(older_than_ms)
    rows.ledger.forget_graves(rows.now - rows.limits.generation_ms)
    if len(old) == limit:
        return Pruned(limit, more=True)
    closures = rows.shelf.forget_closures(older_than_ms - SPARED_MS, limit)
    return Pruned(len(old), more=closures == limit)


def _bury(rows: Rows, run: RunRow) -> None:
    rows.ledger.bury(run.run_id, Grave(run.generation, rows.now))
    rows.runs.drop(run)
