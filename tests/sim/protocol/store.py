"""Executable reference of the durable protocol: what is stored, and the steps that verbs share.

All values are immutable and hashable, so a checker can explore every interleaving. Times are *time left* (0 means now
or past): ports take no time, the store owns the clock.
"""

# mypy: ignore-errors

from __future__ import annotations

from typing import Any, NamedTuple

BUG: set[str] = set()
TERMINAL = ("completed", "error", "cancelled")


def bug(name: str) -> bool:
    """Marks the place of a planted bug; while ``BUG`` is empty the model is the protocol."""
    return name in BUG


class C:
    """Limits; a world may change them."""

    lease, renew, gap, grace = 2, 1, 1, 0  # needs lease > 2*renew + gap, grace > renew (grace 0 = feature off)
    tries, lost = 2, 4  # claims without progress; lost holders in the whole life of a run
    retries, backoff = 1, 1
    cap: int | None = None  # running runs of the (one) tenant


class Wait(NamedTuple):
    kind: str  # hand | event | child
    etype: str = ""
    key: str | None = None  # correlation; None = uncorrelated
    expr: bool = False  # filter is an expression: events become candidates, the machine decides
    reuse: bool = False  # may take an event that another wait of this run consumed
    arm: int = 0  # its number in the event sequence
    low: int = 0  # only events with a higher number are in its window
    state: str = "open"  # open -> resolved (answer in the mailbox) -> closed (read, timeout, cut, cancel)
    by: Any = None  # what resolved or closed it
    cand: int | None = None  # event offered to the machine, not yet judged
    judged: frozenset = frozenset()  # checker only: what the machine has refused


class Run(NamedTuple):
    flow: str
    inc: int  # incarnation, minted at submit
    parent: tuple | None = None  # (run, incarnation, wait) that is told when this run ends
    status: str = "queued"  # queued running suspended completed error cancelled
    token: tuple | None = None  # (holder nonce, generation, incarnation); None = nobody holds it
    gen: int = 0  # copy of the counter that survives delete
    seq: int = 0  # accepted settles
    due: int | None = None  # when somebody must look: lease end while held
    frames: tuple = ()  # the machine's durable state
    waits: tuple = ()  # ((wid, Wait), ...)
    box: tuple = ()  # mailbox: ((number, kind, wid, data), ...); kind is wake, cand or timeout
    boxn: int = 0
    consumed: frozenset = frozenset()  # event numbers this run took (or has on offer)
    tries: int = 0  # claims since the last progress
    lost: int = 0  # takeovers ever
    slot: bool = False  # counts as running for the quota
    cancel: bool = False
    last: tuple | None = None  # (token, seq, digest) of the last accepted settle; outlives the claim
    born: int = 0  # event sequence at submit


class Store(NamedTuple):
    runs: tuple = ()
    gens: tuple = ()  # ((run id, generation), ...), survives delete
    incs: int = 0
    evseq: int = 0  # one sequence: publishes and arms
    log: tuple = ()  # ((number, event id, type, key, ok), ...)
    out: tuple = ()  # outbox: events being fanned out, spawns, wakes and cancels of other runs
    queue: tuple = ()  # ((0 resume | 1 start, run id), ...) waiting for a slot
    inbox: tuple = ()  # producers' messages (number, kind, run, argument, old)
    dead: tuple = ()  # (message number, reason)
    tombs: frozenset = frozenset()
    idle: int = 0  # time since the last contact (claim, renew)
    grace: int = 0  # no takeover while > 0


def get(s: Store, rid: str) -> Run | None:
    return next((r for k, r in s.runs if k == rid), None)


def put(s: Store, rid: str, r: Run | None) -> Store:
    rest = [x for x in s.runs if x[0] != rid] + ([(rid, r)] if r else [])
    return s._replace(runs=tuple(sorted(rest, key=lambda x: x[0])))


def mod(s: Store, rid: str, **kw: Any) -> Store:
    return put(s, rid, get(s, rid)._replace(**kw))


def wait_of(r: Run, wid: tuple) -> Wait | None:
    return next((w for k, w in r.waits if k == wid), None)


def mod_wait(s: Store, rid: str, wid: tuple, **kw: Any) -> Store:
    return mod(s, rid, waits=tuple((k, w._replace(**kw)) if k == wid else (k, w) for k, w in get(s, rid).waits))


def child_id(rid: str, inc: int, wid: tuple) -> str:
    return f"{rid}.{0 if bug('child_id_without_incarnation') else inc}/{wid[0]}.{wid[1]}"


def used(s: Store) -> int:
    return sum(r.slot for _, r in s.runs)


def runnable(s: Store, rid: str, cls: int) -> Store:
    """An unheld run has work: due now with a slot, else queued for a slot (resumes, class 0, before starts)."""
    r = get(s, rid)
    if r.token is not None:  # held: renew, settle and a hint tell the holder
        return mod(s, rid, due=0) if bug("wake_resets_lease") else s
    if bug("wake_not_due") and cls == 0:
        return s
    if r.slot or C.cap is None or used(s) < C.cap or (bug("resume_over_cap") and cls == 0):
        return mod(s, rid, slot=True, due=0)
    if any(k == rid for _, k in s.queue):
        return s
    return mod(s, rid, due=None)._replace(queue=tuple(sorted((*s.queue, (cls, rid)), key=lambda x: x[0])))


def free(s: Store, rid: str) -> Store:
    s = mod(s, rid, slot=False)._replace(queue=tuple(x for x in s.queue if x[1] != rid))
    while s.queue and C.cap is not None and used(s) < C.cap and not bug("free_no_promote"):
        (_, k), rest = s.queue[0], s.queue[1:]
        s = mod(s._replace(queue=rest), k, slot=True, due=0)
    return s


def mail(s: Store, rid: str, kind: str, wid: tuple, data: Any) -> Store:
    r = get(s, rid)
    return runnable(mod(s, rid, box=(*r.box, (r.boxn + 1, kind, wid, data)), boxn=r.boxn + 1), rid, 0)


def eligible(s: Store, r: Run, w: Wait) -> int | None:
    """Lowest event in the window of an open event wait that this run has not consumed."""
    for n, _, etype, key, _ in s.log:
        if etype == w.etype and (w.key is None or key == w.key) and n > w.low and (w.reuse or n not in r.consumed):
            return n
    return None


def awaits_verdict(s: Store, r: Run, wid: tuple, below: int | None = None, accepted: frozenset = frozenset()) -> bool:
    """Is an event of the window on offer to another wait? Refused there, it is for this one."""
    w = wait_of(r, wid)
    offers = {x.cand for k, x in r.waits if k != wid and k not in accepted and x.cand is not None}
    return not w.reuse and any(
        n in offers and etype == w.etype and w.key in (None, key) and n > w.low and (below is None or n < below)
        for n, _, etype, key, _ in s.log
    )


def match(s: Store, rid: str, wid: tuple, accepted: frozenset = frozenset()) -> Store:
    """The one matching step: called when a wait is armed, when a fan-out reaches it, before it is closed unanswered."""
    r = get(s, rid)
    w = wait_of(r, wid)
    if w.kind != "event" or w.state != "open" or w.cand is not None or r.cancel:
        return s
    n = eligible(s, r, w)
    if n is None or (w.expr and awaits_verdict(s, r, wid, n, accepted) and not bug("judged_out_of_order")):
        return s
    if not bug("event_consumed_twice"):
        s = mod(s, rid, consumed=r.consumed | {n})
    if w.expr:
        return mail(mod_wait(s, rid, wid, cand=n), rid, "cand", wid, n)
    return mail(mod_wait(s, rid, wid, state="resolved", by=("ev", n)), rid, "wake", wid, ("ev", n))


def unoffer(s: Store, rid: str, wid: tuple, refused: bool) -> Store:
    """A candidate is refused or overtaken: the event is free for this run's other waits, the window moves past it."""
    r, w = get(s, rid), wait_of(get(s, rid), wid)
    # A wait that may reuse events can be offered one that another wait took: that one keeps it.
    taken = any(x.by == ("ev", w.cand) or x.cand == w.cand for k, x in r.waits if k != wid)
    judged = w.judged | {w.cand} if refused else w.judged
    s = mod_wait(s, rid, wid, cand=None, low=max(w.low, w.cand) if refused else w.low, judged=judged)
    s = mod(
        s,
        rid,
        consumed=r.consumed if taken else r.consumed - {w.cand},
        box=tuple(e for e in r.box if e[1:3] != ("cand", wid)),
    )
    if not bug("refused_no_rematch"):
        for k, _ in r.waits:
            if k != wid or refused:
                s = match(s, rid, k)
    return s


def close(s: Store, rid: str, wid: tuple, why: Any) -> Store:
    w = wait_of(get(s, rid), wid)
    if w.kind == "child" and why in ("timeout", "cut", "cancel") and not bug("no_cancel_to_children"):
        s = s._replace(out=(*s.out, ("cancel", child_id(rid, get(s, rid).inc, wid))))
    return mod_wait(s, rid, wid, state="closed", by=w.by if why == "read" else why, cand=None)


def finish(s: Store, rid: str, status: str) -> Store:
    """The only way into a terminal state: claim, due, waits, mailbox, slot and queue entry go in the same step."""
    for wid, w in get(s, rid).waits:
        if w.state != "closed" and not bug("end_keeps_waits"):
            s = close(s, rid, wid, "cancel" if w.state == "open" else "read")
    r = get(s, rid)
    keep = bug("cancel_keeps_claim") and status == "cancelled"
    s = mod(s, rid, status=r.status if keep else status, token=r.token if keep else None, due=None, box=())
    if keep:
        s = mod(s, rid, status="running", cancel=False, due=r.due)
    if not (bug("cancel_keeps_slot") and status == "cancelled"):
        s = free(s, rid)
    if r.parent and not (bug("child_cancel_silent") and status == "cancelled"):
        s = s._replace(out=(*s.out, ("wake", *r.parent, ("child", status))))
    return s


def contact(s: Store) -> Store:
    """The pulse: after a silence nobody takes over for one grace period."""
    return s._replace(idle=0, grace=C.grace if s.idle > C.gap and not bug("no_grace") else s.grace)


def less(t: int | None) -> int | None:
    """One tick less is left."""
    return t if t is None else max(0, t - 1)
