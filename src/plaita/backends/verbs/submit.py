"""submit: a run exists from here on."""

from __future__ import annotations

from plaita.backends.rows import BESIDE, Rows, StartRow
from plaita.backends.verbs.quota import START, runnable
from plaita.base.clock import new_id
from plaita.base.json import encode
from plaita.ports.runs import Submission, SubmitConflict, Submitted, Tombstoned


def submit(
    rows: Rows, start: Submission, durability: str, *, beside: bool = False, document: bytes | None = None
) -> Submitted | SubmitConflict | Tombstoned:
    """Create a queued run. Quota never refuses a start, it parks it; ``not_before`` takes its slot when due.

    ``beside``: its first slot does not count for the cap. ``document``: the definition, which is stored with the run.
    """
    run = rows.runs.load(start.run_id)
    if run is not None:
        if rows.record.start(run).start.digest != start.digest:
            return SubmitConflict(start.run_id)
        return Submitted(start.run_id, run.incarnation, True, durability)
    grave = rows.ledger.grave(start.run_id)
    if grave is not None and rows.now < grave.buried_ms + rows.limits.tombstone_ms:
        return Tombstoned(start.run_id)
    if document is not None:
        rows.shelf.put_closure(start.closure, document, rows.now)
    generation = grave.generation if grave is not None else 0
    run = rows.runs.add(StartRow(start, rows.now), new_id(), generation, rows.events.current())
    rows.shelf.use_closure(start.closure, rows.now)
    rows.record.log(run, [encode({"event": "submitted", "flow": start.flow_id, "version": start.flow_version})])
    if start.not_before_ms is not None and start.not_before_ms > rows.now:
        run.due = start.not_before_ms
    else:
        if beside:
            run.slot = BESIDE
        runnable(rows, run, START)
    return Submitted(start.run_id, run.incarnation, False, durability)
