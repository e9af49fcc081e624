"""A world of store, holders and network, and the invariants that must hold in it and between two of them."""

# mypy: ignore-errors
# ruff: noqa: C901

from __future__ import annotations

from typing import NamedTuple

from tests.sim.protocol import model as m
from tests.sim.protocol.model import C, Holder, Settle, Store, get
from tests.sim.protocol.scenarios import Scenario


class World(NamedTuple):
    s: Store
    hs: tuple  # holders
    left: tuple  # how often each environment action may still happen
    ghosts: tuple = ()  # request bytes that may still reach the store, answer unheard
    ext: frozenset = frozenset()  # the outside world: (logical call, idempotency key, request)
    kills: int = 0
    told: frozenset = frozenset()  # what callers were promised: (run, incarnation, wid or None, data)
    snap: Store | None = None
    rewound: bool = False


Step = tuple[str, World, list]


def bare(frames: tuple) -> tuple:
    return tuple(f._replace(t=None) for f in frames)


def setup(sc: Scenario) -> World:
    for k in ("lease", "renew", "gap", "grace", "tries", "lost", "retries", "backoff", "cap"):
        setattr(
            C,
            k,
            sc.limits.get(
                k, dict(lease=2, renew=1, gap=1, grace=0, tries=2, lost=4, retries=1, backoff=1, cap=None)[k]
            ),
        )
    return World(Store(), tuple(Holder(i) for i in range(sc.holders)), tuple(n for _, n in sc.acts))


def state_bugs(w: World, sc: Scenario) -> list[str]:
    s, out = w.s, []
    if not w.rewound:
        live = [h.rid for h in w.hs if m.may_begin(h)]
        if len(live) != len(set(live)):
            out.append("I1 two holders with a valid local lease")
    if C.cap is not None:
        if m.used(s) > C.cap:
            out.append("I14 quota exceeded")
        if s.queue and m.used(s) < C.cap:
            out.append("I15 parked by quota while a slot is free")
    if len({e[1] for e in s.log}) != len(s.log):
        out.append("I9 one event, two numbers")
    for rid, r in s.runs:
        queued = any(k == rid for _, k in s.queue)
        if r.status in m.TERMINAL:
            if (
                r.token
                or r.due is not None
                or r.slot
                or queued
                or r.box
                or any(x.state != "closed" for _, x in r.waits)
            ):
                out.append("I6 terminal run keeps claim, due, slot, mailbox or waits")
        elif r.token:
            if r.due is None or (C.cap is not None and not r.slot):
                out.append("I4 held run without lease entry or slot")
        else:
            timers = [f.t for f in r.frames if f.t is not None and f.st in "wb"]
            if not queued and (r.box or r.cancel) and r.due != 0:
                out.append("I4 unread mailbox, nobody will look")
            if not queued and timers and (r.due is None or r.due > min(timers)):
                out.append("I4 timer without due entry")
            if not queued and r.due is None and not any(x.state == "open" for _, x in r.waits):
                out.append("I4 stranded: no due entry, no open wait")
        took = [x.by[1] for _, x in r.waits if isinstance(x.by, tuple) and x.by[0] == "ev" and not x.reuse]
        if len(took) != len(set(took)):
            out.append("I8 one event resolved two waits of a run")
        for wid, x in r.waits:
            if x.kind == "child" and isinstance(x.by, tuple) and x.by[1] in m.TERMINAL:
                c = get(s, m.child_id(rid, r.inc, wid))
                if c and c.status != x.by[1]:
                    out.append("I12 a parent was told of another incarnation's child")
            low = x.arm if x.key is None else r.born
            if isinstance(x.by, tuple) and x.by[0] == "ev" and x.by[1] <= low:
                out.append("I8 event outside the wait's window")
            if (
                x.kind == "event"
                and x.state == "open"
                and x.cand is None
                and not r.cancel
                and r.status not in m.TERMINAL
            ):
                busy = set(took) | {y.cand for _, y in r.waits}
                for n, _, etype, key, _ in s.log:
                    if (
                        etype == x.etype
                        and x.key in (None, key)
                        and n > low
                        and n not in x.judged | busy
                        and not (x.expr and m.awaits_verdict(s, r, wid, n))
                        and not any(e[0] == "event" and e[1] == n and e[2] < x.arm < n for e in s.out)
                    ):
                        out.append("I10 an event that matches an open wait was missed")
    for h in w.hs:
        r = get(s, h.rid) if h.rid else None
        if (
            r
            and r.token == h.token
            and h.req is None
            and not h.reload
            and not w.rewound
            and bare(h.mem[2]) != bare(r.frames)
        ):
            out.append("I7 memory of the accepted holder differs from its commit")
    for rid, inc, wid, data in w.told:
        r = get(s, rid)
        if r is None or r.inc != inc:
            continue
        if wid is None:
            if r.status in ("completed", "error"):
                out.append("I13 cancel was promised, the run ended otherwise")
        elif r.status not in ("cancelled", "error") and not r.cancel:
            f, x = r.frames[wid[0]], m.wait_of(r, wid)
            seen = f.res[wid[1]] if f.pc > wid[1] and len(f.res) > wid[1] else None
            if (
                x is None
                or x.by != data
                or (seen != data and (f.pc > wid[1] or r.status == "completed"))
                or (seen is None and not any(e[1:] == ("wake", wid, data) for e in r.box))
            ):
                out.append("I2 an accepted wake was lost or answered falsely")
    if (
        w.kills > sc.max_kills
        or sum(n - x for (act, n), x in zip(sc.acts, w.left, strict=True) if act[0] == "fail") > sc.max_fails
    ):
        out.append("I16 more attempts than the crash budget")
    return out


def step_bugs(a: World, b: World) -> list[str]:
    out = []
    if b.rewound != a.rewound:
        return out
    for rid, r in a.s.runs:
        n = get(b.s, rid)
        if n is None:
            if r.status not in m.TERMINAL:
                out.append("I6 a live run was deleted")
            continue
        if n.inc == r.inc and r.status in m.TERMINAL and n != r:
            out.append("I6 a terminal run changed")
        if n.gen < r.gen or (n.inc == r.inc and n.seq not in (r.seq, r.seq + 1)):
            out.append("I5 generation or sequence not monotone")
        if n.inc == r.inc and r.cancel and n.status in ("completed", "error"):
            out.append("I13 cancel was promised, the run ended otherwise")
        for wid, x in r.waits if n.inc == r.inc else ():
            y = m.wait_of(n, wid)
            if (
                y is None
                or y.arm != x.arm
                or (x.state == "closed" and y != x)
                or (x.state == "resolved" and y.by != x.by)
            ) or (x.state == "resolved" and y.state == "open"):
                out.append("I3 a wait was resolved twice or its id reused")
            elif x.state == "open" and x.kind == "event" and y.by in ("timeout", "cut") and m.eligible(a.s, r, x):
                out.append("I10 closed although an event was published before")
    for rid, n in b.s.runs:
        r = get(a.s, rid)
        if (r is None or r.inc != n.inc) and n.gen < dict(a.s.gens).get(rid, 0):
            out.append("I5 generation or sequence not monotone")
    return out


def settle_bugs(q: Settle, before: Store, a: tuple) -> list[str]:
    r = get(before, q.rid)
    if a[0] == "Mismatch":
        return ["I7 other bytes under a used sequence number"]
    if a[0] == "Settled" and (q.token != r.token or q.base != (r.inc, r.seq, bare(r.frames))):
        return ["I1 a settle was accepted that was not computed from the current state by the current holder"]
    return []
