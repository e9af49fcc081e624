"""Derive, do not trust: recompute from the headers what the indexes and counters must say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from plaita.backends.rows import EventRow, OutRow, Rows, RunRow, WaitRow
from plaita.backends.verbs.claim import SET_BACK_MS
from plaita.backends.verbs.finish import latest_time
from plaita.backends.verbs.match import awaits_verdict
from plaita.ports.values import TERMINAL

ALL = 1_000_000_000


def audit(rows: Rows, quotas: Mapping[str, int | None] = MappingProxyType({})) -> list[str]:
    """Every difference in words; an empty list is the only good answer. Reads every live run.

    ``quotas``: tenants that have another cap than the limits say.
    """
    queue = {rid for _, rid in rows.ledger.parked()}
    outbox = rows.ledger.entries()
    live = rows.runs.live()
    issues: list[str] = []
    slots: dict[str, int] = {}
    for run in live:
        slots[run.tenant] = slots.get(run.tenant, 0) + (run.slot == 1)
        issues += [
            f"run {run.run_id}: {issue}" for issue in (*_of_run(rows, run, queue), *_of_waits(rows, run, outbox))
        ]
    parked_live = {rid for rid in queue if rows.runs.at(rid).status not in TERMINAL}
    issues += [f"the quota queue holds run number {rid}, which has ended" for rid in sorted(queue - parked_live)]
    issues += _of_due(rows, live)
    issues += _of_quota(rows, slots, quotas)
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
    elif not run.blocked and not run.parked:
        issues += _of_wake_source(run, waits, max(rows.now, latest_time(rows.limits, rows.ledger.pulse())))
    return issues


def _of_wake_source(run: RunRow, waits: list[WaitRow], now: int) -> Iterator[str]:
    """Nobody holds the run and it does not wait for a slot: who will look at it, and in time?

    ``now`` is the latest time the clock has shown: it may have gone back since the run became due. One that a process
    could not load is looked at again a little later than its wait wants.
    """
    is_open = [w for w in waits if w.state == "open"]
    if run.due is None:
        if run.unread or run.cancel:
            yield "has unread mail and nobody will look"
        elif not is_open:
            yield "is stranded: no due entry, no open wait"
    deadline = min([w.deadline for w in is_open if w.deadline is not None], default=None)
    latest = now + SET_BACK_MS if run.blocked_reason else now
    if deadline is not None and (run.due is None or run.due > max(deadline, latest)):
        yield f"has a wait until {deadline} and is due at {run.due}"


def _of_waits(rows: Rows, run: RunRow, outbox: list[OutRow]) -> Iterator[str]:
    """Open waits are found by events, miss none, and a person is asked exactly while they are open."""
    for wait in rows.waits.of(run).values() if run.armed else ():
        task = rows.tasks.load(wait.task_id) if wait.task_id is not None else None
        if task is not None and (task.status == "open") != (wait.state == "open"):
            yield f"wait {wait.wait_id!r} is {wait.state}, its task {task.task_id} is {task.status}"
        if wait.kind != "event" or wait.state != "open":
            continue
        coming = EventRow(rows.events.current() + 1, "", wait.event_type, wait.key, b"", rows.now)
        if not any(r.rid == run.rid and w == wait.wait_id for r, w, _ in rows.waits.listening(coming, wait.arm - 1, 1)):
            yield f"wait {wait.wait_id!r} is open and events would not find it"
        if wait.cand is None and not run.cancel:
            number = rows.events.lowest(wait.event_type, wait.key, wait.low, None if wait.reuse else run)
            waits = number is not None and wait.by_filter and awaits_verdict(rows, run, wait, number)
            if (
                number is not None
                and not waits
                and not any(e.kind == "event" and e.cursor < wait.arm < e.event for e in outbox)
            ):
                yield f"wait {wait.wait_id!r} misses event {number}"


def _of_due(rows: Rows, live: list[RunRow]) -> Iterator[str]:
    """The index of what is due against the headers."""
    queues = sorted({run.queue for run in live})
    found = {run.rid for run in rows.runs.due(queues, None, takeovers="all", limit=ALL)}
    wanted = {run.rid for run in live if run.due is not None and run.due <= rows.now}
    for rid in sorted(found ^ wanted):
        yield f"the index of due runs and the header of run number {rid} disagree"
    earliest = min([run.due for run in live if run.due is not None], default=None)
    if rows.runs.next_due() != earliest:
        yield f"the next due run is at {earliest}, the index says {rows.runs.next_due()}"


def _of_quota(rows: Rows, slots: dict[str, int], quotas: Mapping[str, int | None]) -> list[str]:
    waiting = sorted({tenant for tenant, _ in rows.ledger.parked()})
    issues = []
    for tenant in sorted({*slots, *waiting}):
        cap, counted = quotas.get(tenant, rows.limits.cap), slots.get(tenant, 0)
        if cap is None:
            continue
        if counted > cap:
            issues.append(f"tenant {tenant} has {counted} running runs, the cap is {cap}")
        if tenant in waiting and counted < cap:
            issues.append(f"tenant {tenant} has runs waiting for a slot while one is free")
        indexed = rows.runs.slots(tenant)
        if indexed != counted:
            issues.append(f"tenant {tenant} has {counted} slots in the headers and {indexed} in the index")
    return issues
