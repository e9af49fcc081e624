"""The stored frames against the stored header: what a holder would restore is what the store says."""

from __future__ import annotations

from collections.abc import Callable

from plaita.backends.rows import Rows, RunRow
from plaita.base.json import decode
from plaita.engine.delta import UnreadableState, restore
from plaita.engine.machine import Conditions, Run, next_due
from plaita.ports.runs import Step
from plaita.ports.values import TERMINAL
from plaita.testing.simulation.flows import Planned


def restored(planned: Planned, rows: Rows, run: RunRow) -> Run:
    """The machine as the store has it. Raises ``UnreadableState``."""
    start = rows.record.start(run).start
    conditions = Conditions(run.run_id, {"COLOUR": "red"}, redrive=True, entry=start.entry)
    frames, again = rows.record.frames(run), bool(run.reopened)
    return restore(planned.program, conditions, decode(start.input), frames, now_ms=rows.now, reopened=again)


def compare_machine(rows: Rows, planned: Planned, step: Step, violated: Callable[[str], None]) -> None:
    """After a settle: the waits of the machine are those of the store, and its timers are covered."""
    run = rows.runs.load(step.run_id)
    if run is None or run.status in TERMINAL or run.seq != step.seq or run.reopened:
        return
    try:
        machine = restored(planned, rows, run)
    except UnreadableState as e:
        violated(f"I7 {run.run_id}: {e}")
        return
    stored = {w.wait_id for w in rows.waits.of(run).values() if w.state != "closed"} if run.armed else set()
    if not run.cancel and stored != set(machine.waits):
        violated(f"I7 {run.run_id}: the machine waits for {sorted(machine.waits)}, the store has {sorted(stored)}")
    due = next_due(machine)
    is_free = run.nonce is None and not run.blocked and not run.parked
    if is_free and due is not None and (run.due is None or run.due > max(due, rows.now)):
        violated(f"I4 {run.run_id}: a timer is due at {due}, the run at {run.due}")
