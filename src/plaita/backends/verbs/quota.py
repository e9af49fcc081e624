"""The quota fragments: every verb that changes "counts as running" goes through these."""

from __future__ import annotations

from plaita.backends.rows import Rows, RunRow

RESUME, START = 0, 1


def has_room(rows: Rows, tenant: str) -> bool:
    """Whether one more run of the tenant may count as running."""
    cap = rows.limits.cap
    return cap is None or rows.runs.slots(tenant) < cap


def runnable(rows: Rows, run: RunRow, kind: int) -> None:
    """An unheld run has work: due now with a slot, else queued for one. A holder is told by renew and settle."""
    if run.nonce is not None or run.blocked:
        return
    if run.slot or has_room(rows, run.tenant):
        run.slot = run.slot or 1
        run.due = rows.now
    elif not run.parked:
        run.due = None
        run.parked = True
        rows.ledger.enqueue(run, kind)


def free(rows: Rows, run: RunRow) -> None:
    """The run counts no more; whoever waited longest for a slot gets it in the same step."""
    run.slot = False
    if run.parked:
        run.parked = False
        rows.ledger.dequeue(run)
    promote(rows, run.tenant)


def promote(rows: Rows, tenant: str) -> None:
    """Hand out free slots: resumes before starts, and now and then the oldest start before any resume."""
    if rows.limits.cap is None:
        return
    while has_room(rows, tenant):
        run = _next(rows, tenant)
        if run is None:
            return
        rows.ledger.dequeue(run)
        run.parked = False
        run.slot = True
        run.due = rows.now


def promote_all(rows: Rows) -> None:
    """Adjust to a cap that changed while the store was closed."""
    for tenant, rid in rows.ledger.parked():
        run = rows.runs.at(rid)
        if rows.limits.cap is None:
            rows.ledger.dequeue(run)
            run.parked, run.slot, run.due = False, True, rows.now
        else:
            promote(rows, tenant)


def _next(rows: Rows, tenant: str) -> RunRow | None:
    head = rows.ledger.head(tenant, None)
    every = rows.limits.start_every
    if head is None or not every or rows.ledger.promotions(tenant) % every:
        return head
    return rows.ledger.head(tenant, START) or head
