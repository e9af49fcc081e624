"""Derive, do not trust: recompute from the headers what the indexes and counters must say."""

from __future__ import annotations

from plaita.backends.rows import Rows, RunRow
from plaita.ports.values import TERMINAL


def audit(rows: Rows) -> list[str]:
    """Every difference in words; an empty list is the only good answer. Reads every live run."""
    queue = {rid for _, rid in rows.ledger.parked()}
    issues: list[str] = []
    slots: dict[str, int] = {}
    for run in rows.runs.live():
        slots[run.tenant] = slots.get(run.tenant, 0) + bool(run.slot)
        issues += [f"run {run.run_id}: {issue}" for issue in _of_run(rows, run, queue)]
    parked_live = {rid for rid in queue if rows.runs.at(rid).status not in TERMINAL}
    issues += [f"the quota queue holds run number {rid}, which has ended" for rid in sorted(queue - parked_live)]
    issues += _of_quota(rows, slots)
    return issues


def _of_run(rows: Rows, run: RunRow, queue: set[int]) -> list[str]:
    issues = []
    waits = list(rows.waits.of(run).values()) if run.armed else []
    if run.unread != len(rows.waits.mailbox(run)):
        issues.append(f"counts {run.unread} unread entries, the mailbox has {len(rows.waits.mailbox(run))}")
    if run.armed != len(waits):
        issues.append(f"counts {run.armed} waits, {len(waits)} are stored")
    if bool(run.parked) != (run.rid in queue):
        issues.append("disagrees with the quota queue about waiting for a slot")
    if run.nonce is not None:
        if run.due is None:
            issues.append("is held without a lease entry")
        if rows.limits.cap is not None and not run.slot:
            issues.append("is held without a slot")
    elif not run.blocked and not run.parked and run.due is None:
        if run.unread or run.cancel:
            issues.append("has unread mail and nobody will look")
        elif not any(w.state == "open" for w in waits):
            issues.append("is stranded: no due entry, no open wait")
    return issues


def _of_quota(rows: Rows, slots: dict[str, int]) -> list[str]:
    cap = rows.limits.cap
    if cap is None:
        return []
    issues = [f"tenant {t} has {n} running runs, the cap is {cap}" for t, n in sorted(slots.items()) if n > cap]
    waiting = sorted({tenant for tenant, _ in rows.ledger.parked()})
    issues += [f"tenant {t} has runs waiting for a slot while one is free" for t in waiting if slots.get(t, 0) < cap]
    for tenant, counted in sorted(slots.items()):
        indexed = rows.runs.slots(tenant)
        if indexed != counted:
            issues.append(f"tenant {tenant} has {counted} slots in the headers and {indexed} in the index")
    return issues
