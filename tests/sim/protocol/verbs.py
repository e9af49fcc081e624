"""The verbs of the model: each is one atomic pure function from a store to a store and an answer."""

# mypy: ignore-errors
# ruff: noqa: C901

from __future__ import annotations

from typing import Any, NamedTuple

from tests.sim.protocol.machine import FLOWS, Frame
from tests.sim.protocol.store import (
    TERMINAL,
    C,
    Run,
    Store,
    awaits_verdict,
    bug,
    child_id,
    close,
    contact,
    finish,
    free,
    get,
    mail,
    match,
    mod,
    mod_wait,
    put,
    runnable,
    unoffer,
    used,
    wait_of,
)  # fmt: skip


def submit(s: Store, rid: str, flow: str, parent: tuple | None = None) -> tuple[Store, tuple]:
    r = get(s, rid)
    if r:
        return s, ("Submitted", True) if r.flow == flow or bug("dedup_any_payload") else ("Conflict",)
    if rid in s.tombs:
        return s, ("Tombstoned",)
    gen = 0 if bug("gen_dies_with_row") else dict(s.gens).get(rid, 0)
    s = s._replace(incs=s.incs + 1)
    s = put(s, rid, Run(flow, s.incs, parent, gen=gen, frames=tuple(Frame() for _ in FLOWS[flow][1]), born=s.evseq))
    return runnable(s, rid, 1), ("Submitted", False)


def claimable(s: Store, r: Run) -> bool:
    if r.status in TERMINAL or r.due is None or (r.due > 0 and not (bug("claim_ignores_lease") and r.token)):
        return False
    return r.token is None or s.grace == 0


def claim(s: Store, nonce: tuple, rid: str | None) -> tuple[Store, tuple]:
    """One due run (the real verb: up to n).  The same nonce again answers what it already holds, renewed."""
    s = contact(s)
    held = [k for k, r in s.runs if r.token and r.token[0] == nonce]
    if held:
        return claimed(mod(s, held[0], due=C.lease), held[0])
    r = get(s, rid) if rid else None
    if r is None or not claimable(s, r):
        return s, ("Nothing",)
    if r.cancel and not bug("claim_ignores_cancel"):
        return finish(s, rid, "cancelled"), ("Nothing",)
    takeover = r.token is not None
    if (r.tries >= C.tries or r.lost + takeover > C.lost) and not bug("no_crash_budget"):
        return finish(s, rid, "error"), ("Nothing",)  # worker_lost
    if not r.slot and C.cap is not None and used(s) >= C.cap and not bug("timer_over_cap"):
        return runnable(s, rid, 0), ("Nothing",)  # a timer fired: it queues like any resume
    s = s._replace(gens=tuple(sorted({**dict(s.gens), rid: r.gen + 1}.items())))
    s = mod(
        s,
        rid,
        token=(nonce, r.gen + 1, 0 if bug("token_without_incarnation") else r.inc),
        gen=r.gen + 1,
        status="running",
        due=C.lease,
        slot=True,
        tries=1 if bug("tries_reset_by_claim") else r.tries + 1,
        lost=r.lost + takeover,
    )
    return claimed(s, rid)


def claimed(s: Store, rid: str) -> tuple[Store, tuple]:
    r = get(s, rid)
    return s, ("Claimed", rid, r.token, r.seq, r.inc, r.flow, r.frames, r.box, r.cancel)


def renew(s: Store, rid: str, token: tuple) -> tuple[Store, tuple]:
    s, r = contact(s), get(s, rid)
    if r is None or (r.token != token and not (bug("renew_takes_back") and r.token)):
        return s, ("Lost",)
    s = mod(s, rid, due=C.lease, token=token)  # also revives an expired, untaken lease
    return s, ("Renewed", r.cancel, r.box)


class Settle(NamedTuple):
    rid: str
    token: tuple
    seq: int
    frames: tuple = ()  # the delta: ((branch, Frame), ...)
    closes: tuple = ()  # ((wid, read | event | timeout | cut, expected answer), ...)
    arms: tuple = ()  # ((wid, Wait), ...)
    spawns: tuple = ()  # ((wid, flow), ...)
    ack: int = 0  # mailbox entries read, up to this number
    next: tuple = ("keep",)  # keep | park(due) | end(status) | hand_back
    progress: bool = False
    base: tuple = ()  # checker only: what it was computed from

    @property
    def digest(self) -> tuple:
        return (tuple((b, f._replace(t=None)) for b, f in self.frames), self.closes, self.ack, self.next[0])


def settle(s: Store, q: Settle) -> tuple[Store, tuple]:
    r = get(s, q.rid)
    if r is None:
        return s, ("Stale", None, None)
    # 1. the same bytes again
    if r.last and r.last[1] == q.seq and (r.last[0] == q.token or bug("dup_no_token")) and q.seq == r.seq:
        if r.last[2] != q.digest and not bug("dup_no_digest"):
            return s, ("Mismatch",)
        return s, ("Dup", q.seq, r.token == q.token or bug("dup_no_token"), r.cancel, r.box)
    # 2. the fence: token, status and sequence
    fit = r.token == q.token and r.token is not None and r.status == "running"
    if bug("no_token_check"):
        fit = r.status == "running"
    if not (fit and (q.seq == r.seq + 1 or bug("no_seq_check") or (bug("seq_ge") and q.seq > r.seq))):
        return s, ("Stale", r.token, r.seq)
    done = dict(seq=q.seq, last=(q.token, q.seq, q.digest))
    frames = list(r.frames)
    for b, f in q.frames[1:] if bug("delta_key_dropped") and len(q.frames) > 1 else q.frames:
        frames[b] = f
    # 3. cancelled: the results are kept, nothing is armed or spawned, the run ends
    if r.cancel and not bug("settle_ignores_cancel"):
        return finish(mod(s, q.rid, frames=tuple(frames), **done), q.rid, "cancelled"), (
            "Settled",
            q.seq,
            False,
            True,
            (),
        )
    # 4. every way a wait ends is a compare-and-set; a refusal writes nothing but the answer that won
    closes, closing = q.closes, {c[0] for c in q.closes}
    if q.next[0] == "end" and not bug("end_ignores_unread"):  # the end cuts every wait that is left
        closes += tuple((wid, "cut", None) for wid, w in r.waits if w.state != "closed" and wid not in closing)
    accepted = frozenset(c[0] for c in closes if c[1] == "event")
    taken = {(c[0], c[2]) for c in closes if c[1] == "event"}
    for wid, why, want in closes:
        awaited = False
        if why in ("timeout", "cut"):
            s = refuse_read(s, q, taken)  # read and refused by this settle, then timed out
            if not bug("close_ignores_log"):
                s = match(s, q.rid, wid, accepted)
                awaited = awaits_verdict(s, get(s, q.rid), wid, accepted=accepted)
        w = wait_of(get(s, q.rid), wid)
        if not (
            w.state == "resolved" and w.by == want
            if why == "read"
            else w.state == "open" and w.cand == want and not awaited
        ) and not bug("close_no_cas"):
            return s, ("Conflict", wid)
    # 5. apply: delta, closes, mailbox
    s = mod(s, q.rid, frames=tuple(frames), **done)
    if q.progress or q.next[0] == "park" or bug("any_settle_resets"):
        s = mod(s, q.rid, tries=0)
    for wid, why, want in closes:
        s = close(s, q.rid, wid, ("ev", want) if why == "event" else why)
    s = refuse_read(s, q, taken)
    s = mod(s, q.rid, box=tuple(e for e in get(s, q.rid).box if e[0] > q.ack))
    for wid, _ in get(s, q.rid).waits if accepted and not bug("taken_no_rematch") else ():
        s = match(s, q.rid, wid)
    early_park = q.next[0] == "park" and not get(s, q.rid).box  # only used by a planted bug
    # 6. arms take a number of the event sequence and look at the log at once
    for wid, w in q.arms:
        n = s.evseq + 1
        low = n if w.key is None and not bug("uncorrelated_sees_old") else get(s, q.rid).born
        s = s._replace(evseq=n)
        s = mod(
            s, q.rid, waits=(*tuple(x for x in get(s, q.rid).waits if x[0] != wid), (wid, w._replace(arm=n, low=low)))
        )
        if not bug("arm_ignores_log"):
            s = match(s, q.rid, wid)
    # 7. child runs: outbox
    if not bug("spawn_by_holder"):
        s = s._replace(
            out=s.out + tuple(("spawn", child_id(q.rid, r.inc, wid), flow, q.rid, r.inc, wid) for wid, flow in q.spawns)
        )
    # 8. next
    r, kind = get(s, q.rid), q.next[0]
    if kind == "end":
        return finish(s, q.rid, q.next[1]), ("Settled", q.seq, False, False, ())
    if kind == "park" and (not r.box or bug("park_ignores_box") or (bug("park_before_arm") and early_park)):
        word = "suspended" if any(w.state == "open" for _, w in r.waits) else "running"
        due = None if bug("backoff_not_due") and word == "running" else q.next[1]
        s = mod(s, q.rid, token=None, status=word, due=due)
        s = s if bug("park_keeps_slot") else free(s, q.rid)
        return s, ("Settled", q.seq, False, False, ())
    if kind == "hand_back":
        s = mod(s, q.rid, token=r.token if bug("hand_back_keeps_token") else None, due=0, tries=max(0, r.tries - 1))
        return s, ("Settled", q.seq, False, False, ())
    return s, ("Settled", q.seq, True, False, r.box)  # keep, or a park that became keep


def refuse_read(s: Store, q: Settle, taken: set) -> Store:
    """Candidates that were read and that no close of the settle takes are refused."""
    for number, kind, wid, n in get(s, q.rid).box:
        is_refused = number <= q.ack and kind == "cand" and (wid, n) not in taken
        if is_refused and wait_of(get(s, q.rid), wid).cand == n:
            s = unoffer(s, q.rid, wid, True)
    return s


def closed_to(s: Store, rid: str, wid: tuple) -> tuple | None:
    """Why nobody can say anything to a wait; ``None`` while it is open."""
    r = get(s, rid)
    w = wait_of(r, wid) if r else None
    if (
        w is None
        or (r.cancel and not bug("cancel_leaves_waits"))
        or (r.status in TERMINAL and not bug("end_keeps_waits"))
    ):
        return ("NoSuchWait",)
    if w.state != "open" and not (bug("wake_overwrites") and w.state == "resolved"):
        return ("AlreadyResolved", w.by)
    return None


def wake(s: Store, rid: str, wid: tuple, data: Any) -> tuple[Store, tuple]:
    refused = closed_to(s, rid, wid)
    if refused:
        return s, refused
    w = wait_of(get(s, rid), wid)
    if w.cand is not None:  # a candidate on offer is overtaken
        s = mod_wait(unoffer(s, rid, wid, False), rid, wid, cand=None)
    return mail(mod_wait(s, rid, wid, state="resolved", by=data), rid, "wake", wid, data), ("Woken",)


def elapse(s: Store, rid: str, wid: tuple) -> tuple[Store, tuple]:
    """The holder is to close the wait as its deadline would; it stays open, so what came before still counts."""
    refused = closed_to(s, rid, wid)
    if refused:
        return s, refused
    asked = any(e[1:3] == ("timeout", wid) for e in get(s, rid).box)
    return (s if asked else mail(s, rid, "timeout", wid, None)), ("Woken",)


def publish(s: Store, eid: str, etype: str, key: str | None, ok: bool = True) -> tuple[Store, tuple]:
    if any(e[1] == eid for e in s.log) and not bug("publish_twice_two_numbers"):
        return s, ("Published", next(e[0] for e in s.log if e[1] == eid))
    n = s.evseq + 1
    s = s._replace(evseq=n, log=(*s.log, (n, eid, etype, key, ok)), out=(*s.out, ("event", n, 0)))
    return pump(s, len(s.out) - 1), ("Published", n)


def pump(s: Store, i: int = 0) -> Store:
    """One chunk (here: one wait) of one outbox entry; a part of every claim.  Each entry is idempotent."""
    e, rest = s.out[i], s.out[:i] + s.out[i + 1 :]
    if e[0] == "event":
        _, n, cursor = e
        etype = next(x[2] for x in s.log if x[0] == n)
        todo = sorted(
            (w.arm, rid, wid)
            for rid, r in s.runs
            for wid, w in r.waits
            if w.state == "open" and w.kind == "event" and w.etype == etype and cursor < w.arm < n
        )
        if not todo:
            return s._replace(out=rest)
        s = s._replace(
            out=rest if bug("fanout_cursor_lost") else (*s.out[:i], ("event", n, todo[0][0]), *s.out[i + 1 :])
        )
        return match(s, todo[0][1], todo[0][2])
    s = s._replace(out=rest)
    if e[0] == "cancel":
        return cancel(s, e[1])[0]
    rid, inc, wid = e[3:] if e[0] == "spawn" else e[1:4]
    r = get(s, rid)
    w = wait_of(r, wid) if r and (r.inc == inc or bug("outbox_ignores_incarnation")) else None
    if w is None or w.state != "open":  # the parent has gone on: no orphan, no wake
        return s
    if e[0] == "wake":
        return wake(s, rid, wid, e[4])[0]
    s, a = submit(s, e[1], e[2], (rid, inc, wid))
    return wake(s, rid, wid, ("child", a[0]))[0] if a[0] != "Submitted" and not bug("tombstoned_child_silent") else s


def cancel(s: Store, rid: str) -> tuple[Store, tuple]:
    r = get(s, rid)
    if r is None or r.status in TERMINAL:
        return s, ("AlreadyTerminal",)
    if r.token is not None and (r.due > 0 or s.grace > 0):  # held by somebody who may be alive
        for wid, w in r.waits:  # nobody is told "woken" from here on
            if w.state == "open" and not bug("cancel_leaves_waits"):
                s = close(s, rid, wid, "cancel")
        return mod(s, rid, cancel=True), ("CancelRequested",)
    return finish(s, rid, "cancelled"), ("Cancelled",)


def delete(s: Store, rid: str) -> tuple[Store, tuple]:
    r = get(s, rid)
    if r is None:
        return s, ("NoRun",)
    if r.status not in TERMINAL and not bug("delete_live"):
        return s, ("NotTerminal",)
    return put(s, rid, None)._replace(tombs=s.tombs | {rid}), ("Deleted",)


def reopen(s: Store, rid: str) -> tuple[Store, tuple]:
    """An operator lets a failed run go on: due again, with its budgets given back.  The next claim fences the last."""
    r = get(s, rid)
    if r is None:
        return s, ("NoRun",)
    if r.status != "error":
        return s, ("NotRetryable",)
    return runnable(mod(s, rid, status="running", tries=0, lost=0), rid, 0), ("Reopened",)


def release(s: Store, nonce: tuple) -> tuple[Store, tuple]:
    """A supervisor saw this process die: its leases end now.  The claims stay counted."""
    for rid, r in s.runs:
        if r.token and r.token[0] == nonce:
            s = mod(
                s,
                rid,
                due=0,
                token=None if bug("release_uncounted") else r.token,
                tries=0 if bug("release_uncounted") else r.tries,
            )
    return s, ("Released",)


def accept(s: Store) -> tuple[Store, tuple]:
    """One producer message: its effect and its acknowledgement are one step."""
    (no, kind, rid, arg, old), s = s.inbox[0], s._replace(inbox=s.inbox[1:])
    if bug("ack_before_effect"):
        return s, ("Acked",)
    r = get(s, rid)
    live = r is not None and r.status not in TERMINAL
    if old and (not live or bug("age_gate_on_live")):  # gates: only without a live run
        return s._replace(dead=(*s.dead, (no, "too_old"))), ("Dead", "too_old")
    if kind == "start":
        s, a = submit(s, rid, arg)
    elif kind == "resume" and r is not None:
        s, a = wake(s, rid, arg, ("msg", arg))
    elif kind == "timeout" and r is not None:
        s, a = elapse(s, rid, arg)
    elif kind == "cancel" and r is not None:
        s, a = cancel(s, rid)
    else:
        a = ("Dead", "no_run" if kind in ("resume", "timeout", "cancel") else "unknown_kind")
    if a[0] in ("Dead", "Tombstoned", "Conflict") or (bug("dead_letter_of_live") and a[0] == "AlreadyResolved"):
        s = s._replace(dead=(*s.dead, (no, str(a[-1]).lower())))
    return s, a
