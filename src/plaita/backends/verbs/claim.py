"""claim, reload, renew, release: who moves a run, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plaita.backends.rows import Rows, RunRow, Takeovers
from plaita.backends.verbs.finish import Ending, contact, finish
from plaita.backends.verbs.outbox import pump
from plaita.backends.verbs.quota import RESUME, START, has_room, runnable
from plaita.base.json import encode
from plaita.ports.runs import Claim, Header, Lost, Renewed
from plaita.ports.values import RunId, Token

LACKING_MAX = 100
SET_BACK_MS = 1_000
DIGITS = 12
"""So much of a hash is told to people."""
WORKER_LOST = encode(
    {
        "kind": "node_error",
        "code": -500,
        "message": "every process that took this run was lost before it made progress",
        "error_type": "worker_lost",
        "path": [],
    }
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a process asks for: see ``ports.runs.RunStore.claim``."""

    nonce: str
    n: int
    queues: Sequence[str] = ("default",)
    lacks: frozenset[str] = frozenset()
    only: RunId | None = None
    alone: bool = True


def claim(rows: Rows, wish: Wish) -> list[Claim]:
    """Carry the outbox on, then take due runs. The same nonce again is a resend: it gets what it holds, renewed."""
    takeovers = contact(rows) <= rows.now
    pump(rows, rows.limits.outbox_per_claim)
    held = sorted(rows.runs.held(wish.nonce), key=lambda run: run.rid)
    for run in held:
        run.due = rows.now + rows.limits.lease.lease_ms
    if held:
        return [_claimed(rows, run) for run in held]
    return [_claimed(rows, run, takeover=lost) for run, lost in _take_due(rows, wish, takeovers)]


def is_idle(rows: Rows, wish: Wish) -> bool:
    """Whether a claim would find and change nothing: such a poll costs no write."""
    silence = rows.now - rows.ledger.pulse().contact_ms
    return (
        0 <= silence <= rows.limits.lease.gap_ms // 4
        and rows.ledger.first() is None
        and not rows.runs.due(wish.queues, wish.only, takeovers="all" if wish.alone else "proven", limit=1)
        and not rows.runs.held(wish.nonce)
    )


def reload(rows: Rows, run_id: RunId, token: Token) -> Claim | Lost:
    """The header again, under a claim one already has."""
    run = rows.runs.load(run_id)
    return Lost() if run is None or not run.held_under(token) else _claimed(rows, run)


def renew(rows: Rows, leases: Sequence[tuple[RunId, Token]]) -> list[Renewed | Lost]:
    """Extend leases from now on; an expired one that nobody took is revived."""
    contact(rows)
    lease_ms = rows.limits.lease.lease_ms
    answers: list[Renewed | Lost] = []
    for run_id, token in leases:
        run = rows.runs.load(run_id)
        if run is None or not run.held_under(token):
            answers.append(Lost(run.seq if run is not None and run.incarnation == token.incarnation else None))
            continue
        run.due = rows.now + lease_ms
        mailbox = rows.waits.mailbox(run) if run.unread else ()
        answers.append(Renewed(bool(run.cancel), mailbox, rows.now, lease_ms))
    return answers


def release(rows: Rows, holder: str) -> int:
    """The process is dead: its leases end now. The tokens stay, so that the next claim counts a takeover."""
    held = rows.runs.held_by(holder)
    for run in held:
        run.due = rows.now
    return len(held)


def _take_due(rows: Rows, wish: Wish, takeovers: bool) -> list[tuple[RunRow, bool]]:
    """What was taken, and whether from a process that was lost."""
    taken: list[tuple[RunRow, bool]] = []
    passed: set[int] = set()
    lacking = 0
    while len(taken) < wish.n:
        # A run that only an idle process may take is not looked at by others: there may be thousands of them.
        held: Takeovers = "none" if not takeovers else "all" if wish.alone and not taken else "proven"
        fresh = [r for r in _candidates(rows, wish, held, len(passed)) if r.rid not in passed]
        if not fresh:
            break
        for run in fresh:
            if len(taken) == wish.n or (taken and taken[0][0].tries > 1):
                return taken
            lost = run.nonce is not None
            if lacking < LACKING_MAX and _set_back(rows, run, wish.lacks):
                lacking += 1
            elif _fits(rows, run, wish, taken) and _take(rows, run, wish.nonce):
                taken.append((run, lost))
            passed.add(run.rid)
        if lacking >= LACKING_MAX:
            break
    return taken


def _candidates(rows: Rows, wish: Wish, takeovers: Takeovers, passed: int) -> list[RunRow]:
    """Due runs in order; half of the places are kept for runs that nobody holds when many leases ran out at once."""
    limit = 2 * wish.n + passed
    due = rows.runs.due(wish.queues, wish.only, takeovers=takeovers, limit=limit)
    lost = [r for r in due if r.nonce is not None]
    if len(lost) <= wish.n // 2 or takeovers == "none":
        return due
    free = [r for r in due if r.nonce is None]
    if len(due) == limit and len(free) < wish.n:
        free = rows.runs.due(wish.queues, wish.only, takeovers="none", limit=limit)
    share = max(wish.n - len(free), (wish.n + 1) // 2)
    return [*lost[:share], *free, *lost[share:]]


def _fits(rows: Rows, run: RunRow, wish: Wish, taken: Sequence[object]) -> bool:
    """From its second fruitless claim on a run may only go, alone, to a process that holds nothing."""
    if run.tries >= 1 and (taken or not wish.alone):
        return False
    return not wish.lacks or rows.record.start(run).start.closure not in wish.lacks


def _set_back(rows: Rows, run: RunRow, lacks: frozenset[str]) -> bool:
    if not lacks:
        return False
    closure = rows.record.start(run).start.closure
    if closure not in lacks:
        return False
    run.due = rows.now + SET_BACK_MS
    run.blocked_reason = f"a worker could not load the definition {closure[:DIGITS]}"
    return True


def _take(rows: Rows, run: RunRow, nonce: str) -> bool:
    limits = rows.limits
    takeover = run.nonce is not None
    if run.cancel:
        finish(rows, run, Ending("cancelled"))
        return False
    if run.tries >= limits.tries_max or run.lost + takeover > limits.lost_max:
        finish(rows, run, Ending("error", error=WORKER_LOST, lost_worker=True))
        return False
    if not run.slot and not has_room(rows, run.tenant):
        runnable(rows, run, START if run.status == "queued" else RESUME)
        return False
    run.generation += 1
    run.nonce, run.status, run.slot = nonce, "running", run.slot or 1
    run.due = rows.now + limits.lease.lease_ms
    run.tries += 1
    run.lost += takeover
    run.blocked_reason = ""
    facts: dict[str, object] = {"event": "claimed", "holder": nonce.rpartition(".")[0], "generation": run.generation}
    if takeover:
        facts["takeover"] = True
    rows.record.log(run, [encode(facts)])
    return True


def _claimed(rows: Rows, run: RunRow, *, takeover: bool = False) -> Claim:
    row = rows.record.start(run)
    start = row.start
    header = Header(
        run.run_id, run.incarnation, run.seq, start.flow_id, start.flow_version, start.closure, start.entry,
        start.input, row.submitted_ms, start.not_before_ms, run.tries, start.imports, run.tenant, run.queue,
        bool(run.reopened),
    )  # fmt: skip
    mailbox = rows.waits.mailbox(run) if run.unread else ()
    assert run.nonce is not None
    token = Token(run.nonce, run.generation, run.incarnation)
    return Claim(header, token, mailbox, bool(run.cancel), rows.now, rows.limits.lease.lease_ms, takeover)
