"""Exhaustive exploration of small worlds, seeded deep walks, and a fair schedule that must come to rest."""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Iterator
from random import Random  # noqa: TID251 - a seeded walk is the same every time
from time import perf_counter as clock

from tests.sim.protocol import model as m
from tests.sim.protocol.model import C, get
from tests.sim.protocol.scenarios import Scenario
from tests.sim.protocol.steps import Supervision, environment, progress, renewals, tick
from tests.sim.protocol.world import Step, World, setup, state_bugs, step_bugs


def fair(w: World, sc: Scenario, good: set) -> list[str]:
    path, quiet = [], 0
    for _ in range(400):
        k = hash(w)
        if k in good:
            good.update(path)
            return []
        nxt = next(progress(w, sc), None)
        if nxt is None:
            late = [
                x
                for x, h in zip(renewals(w), [h for h in w.hs if h.rid and h.ans is None], strict=True)
                if h.until <= 1 or h.age >= C.renew
            ]
            nxt = late[0] if late else None
        if nxt is None:
            quiet += 1
            if quiet > C.lease + 2 * C.grace + C.backoff + 4:
                break
            nxt = next(tick(w, sc, poll=True))
        else:
            path.append(k)
            quiet = 0
        bad = nxt[2] + state_bugs(nxt[1], sc) + step_bugs(w, nxt[1])
        if bad:
            return bad
        w = nxt[1]
    else:
        return ["L1 livelock: no quiescence under a fair schedule"]
    out = [
        f"L1 stuck: {k} {r.status}"
        for k, r in w.s.runs
        if r.status not in m.TERMINAL
        and (r.status != "suspended" or r.box or r.due is not None or not any(x.state == "open" for _, x in r.waits))
    ]
    for k, r in w.s.runs:
        for wid, x in r.waits:
            c = get(w.s, m.child_id(k, r.inc, wid)) if x.kind == "child" and x.state == "open" else r
            if c is None or (c is not r and (c.status in m.TERMINAL or c.parent != (k, r.inc, wid))):
                out.append("L2 waits for a child that is not there or has ended")
        if r.parent and r.status not in m.TERMINAL:
            p = get(w.s, r.parent[0])
            if p is None or p.inc != r.parent[1] or m.wait_of(p, r.parent[2]).state != "open":
                out.append("L2 orphan: the parent has gone on, the child lives")
    if w.s.out or w.s.inbox:
        out.append("L1 outbox or inbox never emptied")
    if not out:
        good.update(path)
    return out


def all_steps(w: World, sc: Scenario) -> Iterator[Step]:
    yield from progress(w, sc)
    yield from environment(w, sc)
    yield from renewals(w)
    yield from tick(w, sc)


def explore(sc: Scenario, limit: int = 10**9, seconds: float = 1e9, live: bool = True) -> dict:
    Supervision.on, w0, t0 = sc.supervised, setup(sc), clock()
    seen, good = {hash(w0): (None, "start")}, set()
    level, depth, complete = [w0], 0, True
    while level:
        nxt = []
        for w in level:
            if len(seen) > limit or clock() - t0 > seconds:
                complete, nxt = False, []
                break
            kw = hash(w)
            for label, v, bad in all_steps(w, sc):
                k = hash(v)
                if k in seen and not bad:
                    continue
                seen.setdefault(k, (kw, label))
                bad = bad + state_bugs(v, sc) + step_bugs(w, v)
                if not bad and live:
                    bad = fair(v, sc, good)
                if bad:
                    trace = [label]
                    while kw is not None:
                        kw, lab = seen[kw]
                        trace.append(lab)
                    return dict(
                        name=sc.name,
                        bad=sorted(set(bad)),
                        states=len(seen),
                        depth=depth + 1,
                        trace=trace[::-1],
                        secs=clock() - t0,
                    )
                nxt.append(v)
        level, depth = nxt, depth + (1 if nxt else 0)
    return dict(name=sc.name, bad=[], states=len(seen), depth=depth, complete=complete, secs=clock() - t0)


def walk(sc: Scenario, seed: int, length: int = 150) -> dict:
    Supervision.on, w, rnd, trace, good = sc.supervised, setup(sc), Random(f"{sc.name}/{seed}"), [], set()
    for i in range(length):
        steps = list(all_steps(w, sc))
        label, v, bad = rnd.choice(steps)
        trace.append(label)
        bad = bad + state_bugs(v, sc) + step_bugs(w, v)
        if not bad and i % 10 == 0:
            bad = fair(v, sc, good)
        if bad:
            return dict(name=sc.name, seed=seed, bad=sorted(set(bad)), trace=trace)
        w = v
    return dict(name=sc.name, seed=seed, bad=[], steps=length)
