"""wake: answer an open wait, or let it be over."""

from __future__ import annotations

from plaita.backends.rows import Rows, RunRow, WaitRow
from plaita.backends.verbs.match import Posting, digest_of, post, resolve, withdraw
from plaita.ports.runs import AlreadyResolved, NoSuchWait, WakeAnswer, Woken
from plaita.ports.values import TERMINAL, By, RunId, WaitId

NOTHING = b"null"


def wake(rows: Rows, run_id: RunId, wait_id: WaitId, data: bytes, actor: str = "") -> WakeAnswer:
    """A person, a callback or a message answers by wait id."""
    return answer(rows, rows.runs.load(run_id), wait_id, data, By("hand", digest=digest_of(data), actor=actor))


def answer(rows: Rows, run: RunRow | None, wait_id: WaitId, data: bytes, by: By) -> WakeAnswer:
    """Resolve the wait unless it is gone or answered; a candidate on offer is overtaken."""
    found = _open(rows, run, wait_id)
    if not isinstance(found, tuple):
        return found
    run, wait = found
    if wait.cand is not None:
        withdraw(rows, run, wait, refused=False)
    resolve(rows, run, wait, by, data)
    return Woken(run.run_id)


def elapse(rows: Rows, run: RunRow, wait_id: WaitId) -> WakeAnswer:
    """Ask the holder to close an open wait as its deadline would.

    The wait stays open, so that its close is judged as any other: what was published or answered first counts.
    """
    found = _open(rows, run, wait_id)
    if not isinstance(found, tuple):
        return found
    _, wait = found
    if not any(mail.kind == "timeout" and mail.wait_id == wait_id for mail in rows.waits.mailbox(run)):
        post(rows, run, Posting("timeout", wait, NOTHING))
    return Woken(run.run_id)


def _open(rows: Rows, run: RunRow | None, wait_id: WaitId) -> tuple[RunRow, WaitRow] | NoSuchWait | AlreadyResolved:
    if run is None or run.status in TERMINAL or run.cancel or not run.armed:
        return NoSuchWait(wait_id)
    wait = rows.waits.of(run).get(wait_id)
    if wait is None:
        return NoSuchWait(wait_id)
    if wait.state != "open":
        assert wait.by is not None
        return AlreadyResolved(wait.by)
    return run, wait
