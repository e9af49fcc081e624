"""cancel: end a run; a holder that may be alive is asked, everybody else is not."""

from __future__ import annotations

from plaita.backends.rows import Rows
from plaita.backends.verbs.finish import Ending, close, finish
from plaita.base.json import encode
from plaita.ports.runs import AlreadyTerminal, Cancelled, CancelRequested, NoRun
from plaita.ports.values import TERMINAL, By, RunId


def cancel(rows: Rows, run_id: RunId, actor: str = "") -> Cancelled | CancelRequested | AlreadyTerminal | NoRun:
    """The promise ``CancelRequested`` is kept by the holder's next settle, or by the next claim."""
    run = rows.runs.load(run_id)
    if run is None:
        return NoRun(run_id)
    if run.status in TERMINAL:
        return AlreadyTerminal(run.status)
    if run.nonce is None or (_over(run.due, rows.now) and _over(rows.ledger.pulse().grace_until_ms, rows.now)):
        finish(rows, run, Ending("cancelled", actor=actor))
        return Cancelled()
    for wait in rows.waits.of(run).values() if run.armed else ():
        if wait.state == "open":
            close(rows, run, wait, By("cancel", actor=actor))
    if not run.cancel:
        run.cancel = True
        rows.record.log(run, [encode({"event": "cancel_requested", "actor": actor})])
    return CancelRequested()


def _over(at_ms: int | None, now: int) -> bool:
    return at_ms is None or at_ms <= now
