"""reopen: a run that ended in error, or was blocked, goes on where it stopped."""

from __future__ import annotations

from plaita.backends.rows import Rows
from plaita.backends.verbs.quota import RESUME, runnable
from plaita.base.json import encode
from plaita.ports.runs import NoRun, NotRetryable, Reopened
from plaita.ports.values import RunId


def reopen(rows: Rows, run_id: RunId) -> Reopened | NotRetryable | NoRun:
    """Finished nodes do not run again. How often it helps is bounded: ``failures_max`` and ``wakeups_max``."""
    run = rows.runs.load(run_id)
    if run is None:
        return NoRun(run_id)
    if run.blocked:
        run.blocked, run.blocked_reason = False, ""
    elif run.status != "error":
        return NotRetryable(f"status_{run.status}")
    elif not rows.record.start(run).start.closure:
        return NotRetryable("no_definition")
    else:
        outcome = rows.record.outcome(run)
        if outcome.lost_worker and outcome.wakeups >= rows.limits.wakeups_max:
            return NotRetryable("wakeups_exhausted")
        if not outcome.lost_worker and outcome.failures >= rows.limits.failures_max:
            return NotRetryable("deterministic_failures")
        outcome.wakeups += outcome.lost_worker
        outcome.failures += not outcome.lost_worker
        outcome.error, outcome.lost_worker = None, False
        rows.record.save_outcome(run, outcome)
        run.ended, run.status, run.reopened = None, "running", True
    run.tries = run.lost = 0
    rows.record.log(run, [encode({"event": "reopened"})])
    runnable(rows, run, RESUME)
    return Reopened(run_id)
