"""wake: answer an open wait."""

from __future__ import annotations

from plaita.backends.rows import Rows, RunRow
from plaita.backends.verbs.match import digest_of, resolve, withdraw
from plaita.ports.runs import AlreadyResolved, NoSuchWait, WakeAnswer, Woken
from plaita.ports.values import TERMINAL, By, RunId, WaitId


def wake(rows: Rows, run_id: RunId, wait_id: WaitId, data: bytes, actor: str = "") -> WakeAnswer:
    """A person, a callback or a message answers by wait id."""
    return answer(rows, rows.runs.load(run_id), wait_id, data, By("hand", digest=digest_of(data), actor=actor))


def answer(rows: Rows, run: RunRow | None, wait_id: WaitId, data: bytes, by: By) -> WakeAnswer:
    """Resolve the wait unless it is gone or answered; a candidate on offer is overtaken."""
    if run is None or run.status in TERMINAL or run.cancel or not run.armed:
        return NoSuchWait(wait_id)
    wait = rows.waits.of(run).get(wait_id)
    if wait is None:
        return NoSuchWait(wait_id)
    if wait.state != "open":
        assert wait.by is not None
        return AlreadyResolved(wait.by)
    if wait.cand is not None:
        withdraw(rows, run, wait, refused=False)
    resolve(rows, run, wait, by, data)
    return Woken(run.run_id)
