"""What may happen next in a world: progress, faults, time."""

# mypy: ignore-errors
# ruff: noqa: C901

from __future__ import annotations

from collections.abc import Iterator

from tests.sim.protocol import model as m
from tests.sim.protocol.model import C, Holder, Run, Settle, Store, bug, get
from tests.sim.protocol.scenarios import Scenario
from tests.sim.protocol.world import Step, World, settle_bugs


def seth(w: World, h: Holder, **kw: object) -> World:
    return w._replace(hs=tuple(h if x.hid == h.hid else x for x in w.hs), **kw)


def virgin(w: World, h: Holder) -> bool:
    return (
        h == Holder(h.hid)
        and not any(q[0] == h.hid for q in w.ghosts)
        and not any(x and x[0][0] == h.hid for _, r in w.s.runs for x in (r.token, r.last and r.last[0]))
    )


def reborn(h: Holder) -> Holder:
    return Holder(h.hid, h.boot + 1)


def serve(w: World, h: Holder, req: tuple, rid: str | None, sc: Scenario) -> tuple[Store, tuple, list]:
    """The store serves one request (claim or settle)."""
    if isinstance(req, Settle):
        s, a = m.settle(w.s, req)
        return s, a, settle_bugs(req, w.s, a)
    s, a = m.claim(w.s, req[1], rid)
    r = get(w.s, rid) if rid else None
    bad = []
    if (
        sc.timely
        and r
        and r.token
        and r.token[0] != req[1]
        and any(x.rid == rid and x.token == r.token for x in w.hs)
        and get(s, rid).token != r.token
    ):
        bad = ["I17 a healthy holder lost its run"]
    return s, a, bad


def picks(w: World, req: tuple) -> list:
    if isinstance(req, Settle) or any(r.token and r.token[0] == req[1] for _, r in w.s.runs):
        return [None]
    return [k for k, r in w.s.runs if m.claimable(w.s, r)] or [None]


def progress(w: World, sc: Scenario) -> Iterator[Step]:
    """What happens without faults."""
    for h in w.hs:
        if h.ans is not None:
            yield f"recv{h.hid} {h.ans[0]}", seth(w, m.on_answer(h, h.ans, w.s)), []
        elif h.req is not None:
            for rid in picks(w, h.req):
                s, a, bad = serve(w, h, h.req, rid, sc)
                if sc.slow:
                    yield f"serve{h.hid} {a[0]}", seth(w, h._replace(ans=a), s=s), bad
                    continue
                if bug("spawn_by_holder") and a[0] == "Settled" and h.req.spawns:
                    s = s._replace(
                        out=s.out
                        + tuple(
                            ("spawn", m.child_id(h.rid, h.mem[0], wid), f, h.rid, h.mem[0], wid)
                            for wid, f in h.req.spawns
                        )
                    )
                yield f"serve{h.hid} {type(h.req).__name__} {a}", seth(w, m.on_answer(h, a, w.s), s=s), bad
        elif h.rid is None:
            twin = any(g.hid < h.hid and virgin(w, g) for g in w.hs) and virgin(w, h)  # symmetric: the first one goes
            if not twin and any(m.claimable(w.s, r) for _, r in w.s.runs):
                h2 = h._replace(boot=h.boot + 1) if sc.fresh_nonce and not bug("nonce_per_process") else h
                yield f"claim{h.hid}", seth(w, h2._replace(req=("claim", m.nonce(h2)))), []
        elif h.reload:
            yield f"load{h.hid}", seth(w, m.load(h, w.s)), []
        else:
            q = m.decide(h, w.s)
            if q:
                yield f"decide{h.hid} {q.next}", seth(w, h._replace(req=q, used=len(h.done), sent=0)), []
        if h.rid and not h.reload and h.ans is None:
            todo = h.todo
            if bug("effect_before_settle") and isinstance(h.req, Settle):
                new = {(b, f.pc): f for b, f in h.req.frames if f.st == "c"}
                todo = todo | (set(new) - h.fly - {a for a, _ in h.done})
            for addr in sorted(todo) if m.may_begin(h) or (bug("effect_before_settle") and h.req) else ():
                yield begin(w, h, addr)
            for addr in sorted(h.fly):
                yield (
                    f"return{h.hid} {addr}",
                    seth(w, h._replace(fly=h.fly - {addr}, done=(*h.done, (addr, "ok")))),
                    [],
                )
    if w.s.out:
        yield "pump", w._replace(s=m.pump(m.contact(w.s))), []
    if w.s.inbox:
        s, a = m.accept(w.s)
        yield f"accept {w.s.inbox[0]} {a}", w._replace(s=s), accept_bugs(w.s, s)


def accept_bugs(a: Store, b: Store) -> list[str]:
    _, kind, rid, arg, _ = a.inbox[0]
    r, n = get(a, rid), get(b, rid)
    live, dead = r is not None and r.status not in m.TERMINAL, b.dead != a.dead
    if live and dead and kind in ("resume", "timeout", "cancel"):
        return ["I11 dead letter for a live run"]
    wt = m.wait_of(r, arg) if live and kind == "resume" else None
    if (
        (wt and wt.state == "open" and not r.cancel and m.wait_of(n, arg).state == "open")
        or (kind == "timeout" and is_unheard(r, n, arg))
        or (kind == "start" and not n and not dead)
        or (kind == "cancel" and live and not (n.cancel or n.status == "cancelled"))
        or (kind == "junk" and not dead)
    ):
        return ["I11 acknowledged without effect"]
    return []


def is_unheard(r: Run | None, n: Run | None, wid: tuple) -> bool:
    """An open wait was to be over, and its holder is not told."""
    wt = m.wait_of(r, wid) if r is not None and r.status not in m.TERMINAL and not r.cancel else None
    return bool(wt and wt.state == "open" and not any(e[1:3] == ("timeout", wid) for e in n.box))


def begin(w: World, h: Holder, addr: tuple) -> Step:
    b, pc = addr
    logical, key, request = (h.rid, h.mem[0], *addr), m.call_key(h, addr), m.call_request(h, addr)
    bad = [] if w.rewound or all(k != key or q == request for _, k, q in w.ext) else ["I19 same key, other request"]
    if any(lg == logical and k != key for lg, k, _ in w.ext):
        bad.append("I19 one call, two keys")
    r = get(w.s, h.rid)
    if not w.rewound:
        if r is None or r.inc != h.mem[0] or r.frames[b].pc > pc or r.status in m.TERMINAL:
            bad.append("I18 a finished effect was performed again")
        elif r.frames[b].pc != pc or r.frames[b].st != "c":
            bad.append("I18 an effect began before its start was durable")
    w = w._replace(ext=w.ext | {(logical, key, request)})
    if m.FLOWS[h.mem[1]][1][b][pc][0] == "kill":
        h2, s = reborn(h), m.release(w.s, m.nonce(h))[0] if Supervision.on else w.s
        return f"begin{h.hid} {addr} kills the worker", seth(w, h2, s=s, kills=w.kills + 1), bad
    return f"begin{h.hid} {addr}", seth(w, h._replace(todo=h.todo - {addr}, fly=h.fly | {addr})), bad


class Supervision:
    """Whether a supervisor releases the leases of a worker it saw die; set by the scenario."""

    on = False


def renewals(w: World) -> Iterator[Step]:
    for h in w.hs:
        if h.rid and h.ans is None:
            s, a = m.renew(w.s, h.rid, h.token)
            if a[0] == "Lost":
                yield f"renew{h.hid} Lost", seth(w, m.drop(h), s=s), []
            else:
                box = h.box if h.req or h.reload else tuple(e for e in a[2] if e[0] > h.ack)
                yield (
                    f"renew{h.hid}",
                    seth(w, h._replace(until=C.lease, age=0, box=box, cancel=h.cancel or a[1]), s=s),
                    [],
                )


def tick(w: World, sc: Scenario, poll: bool = False) -> Iterator[Step]:
    if sc.timely and any(h.rid and h.age >= C.renew for h in w.hs):
        return
    s = m.tick_store(w.s)
    w = w._replace(
        s=m.contact(s) if poll else s,
        hs=tuple(m.tick_holder(h, sc.timely) for h in w.hs),
        snap=m.tick_store(w.snap) if w.snap else None,
        ghosts=tuple((i, m.tick_request(q)) for i, q in w.ghosts),
    )
    yield "tick", w, []


def environment(w0: World, sc: Scenario) -> Iterator[Step]:
    for i, q in enumerate(w0.ghosts):
        for rid in picks(w0, q[1]):
            s, a, bad = serve(w0, w0.hs[q[0]], q[1], rid, sc)
            bad = bad if a[0] != "Mismatch" else []  # a settle refused by Conflict left its number free
            yield f"late bytes {a[0]}", w0._replace(s=s, ghosts=w0.ghosts[:i] + w0.ghosts[i + 1 :]), bad
    if any(h.rid is None for h in w0.hs) and w0.s.idle > 0 and C.grace:
        yield "poll", w0._replace(s=m.contact(w0.s)), []
    for i, (act, _) in enumerate(sc.acts):
        if w0.left[i] == 0:
            continue
        w = w0._replace(left=(*w0.left[:i], w0.left[i] - 1, *w0.left[i + 1 :]))
        s, kind, args, lab = w.s, act[0], act[1:], " ".join(map(str, act))
        r = get(s, args[0]) if args and isinstance(args[0], str) else None
        if kind == "submit":
            s2, a = m.submit(s, *args)
            bad = (
                ["I20 other payload under a used key was accepted"]
                if r and r.flow != args[1] and a[0] == "Submitted"
                else []
            )
            yield f"{lab} {a}", w._replace(s=s2), bad
        elif kind == "publish":
            s2, a = m.publish(s, *args)
            yield f"{lab} {a}", w._replace(s=s2), []
        elif kind in ("wake", "cancel") and r:
            s2, a = m.wake(s, *args) if kind == "wake" else m.cancel(s, *args)
            promise = (
                {(args[0], r.inc, args[1], args[2])}
                if a[0] == "Woken"
                else {(args[0], r.inc, None, None)}
                if a[0] in ("Cancelled", "CancelRequested")
                else set()
            )
            bad = ["I2 woken after the end"] if a[0] == "Woken" and (r.status in m.TERMINAL or r.cancel) else []
            yield f"{lab} {a}", w._replace(s=s2, told=w.told | promise), bad
        elif kind == "delete" and r:
            s2, a = m.delete(s, *args)
            yield f"{lab} {a}", w._replace(s=s2), []
        elif kind == "untomb":
            yield lab, w._replace(s=s._replace(tombs=s.tombs - {args[0]})), []
        elif kind == "msg":
            yield lab, w._replace(s=s._replace(inbox=(*s.inbox, args))), []
        elif kind == "outage":  # nobody reaches the store for longer than a lease
            w = w._replace(left=tuple(0 if x[0][0] == "outage" else n for x, n in zip(sc.acts, w.left, strict=True)))
            for _ in range(C.lease + 1):
                w = next(tick(w._replace(hs=tuple(h._replace(age=0) for h in w.hs)), sc))[1]
            yield lab, w._replace(hs=tuple(h._replace(age=0) for h in w.hs)), []
        elif kind == "snap":
            yield lab, w._replace(snap=s), []
        elif kind == "rewind" and w.snap:  # incarnations are random: they do not rewind
            yield lab, w._replace(s=w.snap._replace(incs=s.incs), snap=None, told=frozenset(), rewound=True), []
        for h in w.hs:
            if kind in ("crash", "release") and (h.rid or h.req):
                s2 = m.release(s, m.nonce(h))[0] if kind == "release" else s
                yield f"{kind}{h.hid}", seth(w, reborn(h), s=s2), []
            elif kind == "lose" and h.req is not None and h.ans is None:  # served, the answer is lost
                for rid in picks(w, h.req):
                    s2, a, bad = serve(w, h, h.req, rid, sc)
                    again = (
                        h._replace(req=None, used=0) if bug("recompute_on_unknown") and isinstance(h.req, Settle) else h
                    )
                    yield f"lose{h.hid} {a[0]}", seth(w, again, s=s2), bad
            elif kind == "ghost" and h.req is not None and h.ans is None:  # a copy of the bytes stays in the network
                yield f"ghost{h.hid}", w._replace(ghosts=(*w.ghosts, (h.hid, h.req))), []
            elif kind == "drain" and h.rid and not (h.req or h.ans or h.reload or h.fly or h.done):
                yield f"drain{h.hid}", seth(w, h._replace(req=m.decide(h, s, True), used=0)), []
            elif kind == "fail":
                for addr in sorted(h.fly):
                    yield (
                        f"fail{h.hid} {addr}",
                        seth(w, h._replace(fly=h.fly - {addr}, done=(*h.done, (addr, "fail")))),
                        [],
                    )
