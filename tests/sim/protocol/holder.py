"""What a holder does with its claim, and how time passes for it and for the store."""

# mypy: ignore-errors

from __future__ import annotations

from typing import NamedTuple

from tests.sim.protocol.machine import advance
from tests.sim.protocol.store import TERMINAL, C, Store, bug, get, less
from tests.sim.protocol.verbs import Settle


class Holder(NamedTuple):
    hid: int
    boot: int = 0  # process incarnation: part of the nonce
    rid: str | None = None
    token: tuple | None = None
    seq: int = 0
    until: int = 0  # local lease, counted from the send of the last answered claim or renew
    age: int = 0  # since the last renewal (only kept where the checker demands timely renewals)
    mem: tuple = ()  # (incarnation, flow, frames): the machine in memory
    ack: int = 0
    box: tuple = ()
    todo: frozenset = frozenset()  # calls whose start is durable, not yet begun
    fly: frozenset = frozenset()  # begun
    done: tuple = ()  # results not yet durable
    used: int = 0  # how many of them the request in flight carries
    cancel: bool = False
    reload: bool = False
    req: tuple | None = None  # verb in flight; resent unchanged until answered
    ans: tuple | None = None  # answer on its way (slow networks)
    sent: int = 0  # since the request was first sent


def nonce(h: Holder) -> tuple:
    return (h.hid, h.boot)


def drop(h: Holder) -> Holder:
    return Holder(h.hid, h.boot)


def calls(h: Holder) -> Holder:
    opened = {(b, f.pc) for b, f in enumerate(h.mem[2]) if f.st == "c"}
    return h._replace(todo=frozenset(opened - h.fly - {a for a, _ in h.done}), fly=h.fly & opened)


def may_begin(h: Holder) -> bool:
    """A call begins only under a valid local lease and never while a settle is unanswered (it may have given it up)."""
    if h.rid is None or h.cancel or h.reload or (isinstance(h.req, Settle) and not bug("begin_while_settling")):
        return False
    return h.until > 0 or bug("no_local_check")


def decide(h: Holder, s: Store, drain: bool = False) -> Settle | None:
    """advance + take_delta: the next settle of this attempt, or None while there is nothing to say."""
    inc, flow, frames = h.mem
    base = (inc, h.seq, tuple(f._replace(t=None) for f in frames))
    q = Settle(h.rid, h.token, h.seq + 1, ack=h.ack, base=base)
    if h.cancel:
        return q._replace(next=("end", "cancelled"))
    if drain:
        return q._replace(next=("hand_back",))
    new, closes, arms, spawns, end = advance(flow, frames, h.seq + 1, h.box, h.done, s.log)
    ack = max([h.ack] + [e[0] for e in h.box])
    q = q._replace(
        frames=tuple((b, f) for b, f in enumerate(new) if f != frames[b]),
        closes=closes,
        arms=arms,
        spawns=spawns,
        ack=ack,
        progress=new != frames or ack > h.ack,
    )
    if end:
        return q._replace(next=("end", end))
    if any(f.st == "c" for f in new):
        opening = bug("any_settle_resets") and h.todo and get(s, h.rid).last[0] != h.token
        return q if q.progress or opening else None
    return q._replace(next=("park", min([f.t for f in new if f.t is not None], default=None)))


def on_answer(h: Holder, a: tuple, s: Store) -> Holder:
    """What a holder does on each answer.  (`s` only serves the planted bugs.)"""
    q, h = h.req, h._replace(req=None, ans=None)
    if a[0] == "Claimed":
        _, rid, token, seq, inc, flow, frames, box, cancel_ = a
        until = C.lease if bug("lease_from_reply") else max(0, C.lease - h.sent)
        return calls(Holder(h.hid, h.boot, rid, token, seq, until, mem=(inc, flow, frames), box=box, cancel=cancel_))
    if a[0] in ("Settled", "Dup"):
        _, seq, held, cancel_, box = a
        if not held:
            return drop(h)
        frames = list(h.mem[2])
        for b, f in q.frames:
            frames[b] = f
        h = h._replace(
            seq=seq,
            ack=q.ack,
            box=tuple(e for e in box if e[0] > q.ack),
            cancel=cancel_,
            done=h.done[h.used :],
            used=0,
            mem=(*h.mem[:2], tuple(frames)),
        )
        return calls(h)
    if a[0] == "Conflict":
        return h._replace(reload=True, used=0)  # the call table stays, the machine goes
    return drop(h)  # Nothing, Stale, Mismatch


def load(h: Holder, s: Store) -> Holder:
    """Restore under the same claim after a Conflict."""
    r = get(s, h.rid)
    if r is None or r.token != h.token:
        return drop(h)
    return calls(h._replace(reload=False, seq=r.seq, mem=(r.inc, r.flow, r.frames), box=r.box, ack=0, cancel=r.cancel))


def call_key(h: Holder, addr: tuple) -> tuple:
    return (h.rid, 0 if bug("key_without_incarnation") else h.mem[0], *addr) + (
        (h.token[1],) if bug("key_with_generation") else ()
    )


def call_request(h: Holder, addr: tuple) -> tuple:
    f = h.mem[2][addr[0]]
    return (h.mem[0], h.token[1] if bug("stale_arguments") else f.stamp, f.res)


def tick_frames(frames: tuple) -> tuple:
    return tuple(f._replace(t=less(f.t)) for f in frames)


def tick_store(s: Store) -> Store:
    runs = tuple(
        (k, r if r.status in TERMINAL else r._replace(due=less(r.due), frames=tick_frames(r.frames))) for k, r in s.runs
    )
    return s._replace(runs=runs, idle=min(s.idle + 1, C.gap + 1), grace=less(s.grace))


def tick_request(q: tuple | None) -> tuple | None:
    if not isinstance(q, Settle):
        return q
    nxt = ("park", less(q.next[1])) if q.next[0] == "park" else q.next
    return q._replace(frames=tuple((b, f._replace(t=less(f.t))) for b, f in q.frames), next=nxt)


def tick_holder(h: Holder, timely: bool) -> Holder:
    mem = (*h.mem[:2], tick_frames(h.mem[2])) if h.mem else ()
    return h._replace(
        until=less(h.until),
        mem=mem,
        req=tick_request(h.req),
        sent=min(h.sent + 1, C.lease) if h.req else 0,
        age=h.age + 1 if timely and h.rid else 0,
    )
