"""The memory, the SQLite and the Redis store answer and hold what the model says, step by step."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random  # noqa: TID251 - a seeded walk is the same every time
from typing import Any, ClassVar

import pytest

from tests.sim.lockstep import Claimed, Lockstep, Move
from tests.sim.protocol import model as m

SEEDS = 9
ON_REDIS = 3
"""One walk in so many has Redis beside it; the Hypothesis machine always has."""
CROWDS = 6
STEPS = 120
RUNS = ("a", "b", "c")
Act = partial[None]


class Walk:
    """A seeded walk: what may happen next is drawn from what the model knows."""

    runs: tuple[str, ...] = RUNS
    weights: ClassVar = {
        "submit": 5, "claim": 10, "settle": 20, "wake": 5, "publish": 5, "cancel": 1, "delete": 2, "release": 1,
        "renew": 3, "pump": 5, "tick": 5, "message": 4,
    }  # fmt: skip

    def __init__(self, seed: int, stores: Lockstep) -> None:
        self.dice, self.stores = Random(seed), stores
        self.waits = 0
        self.stores.submit("a", "E")
        self.stores.claim("a", fresh=True)
        self.done: list[Move] = []
        self.trace: list[str] = []

    def step(self) -> None:
        name = self.dice.choices(list(self.weights), list(self.weights.values()))[0]
        act: Act | None = getattr(self, name)()
        if act is not None:
            self.trace.append(f"{name} {act.args} {act.keywords}")
            act()
            self.stores.compare()

    def submit(self) -> Act:
        return partial(self.stores.submit, self.dice.choice(self.runs), self.dice.choice("EEEH"))

    def claim(self) -> Act:
        model = self.stores.model
        due = [run_id for run_id, run in model.runs if m.claimable(model, run)]
        run_id = self.dice.choice(due) if due and self.dice.random() < 0.9 else self.a_run()
        return partial(self.stores.claim, run_id, fresh=self.dice.random() < 0.85)

    def settle(self) -> Act | None:
        if self.done and self.dice.random() < 0.1:
            return partial(self.stores.settle, self.dice.choice(self.done[-3:]))
        claim = self.a_claim()
        if claim is None:
            return None
        self.done.append(self.a_move(claim))
        return partial(self.stores.settle, self.done[-1])

    def wake(self) -> Act:
        open_waits = [(k, wid) for k, run in self.stores.model.runs for wid, w in run.waits if w.state == "open"]
        if open_waits and self.dice.random() < 0.7:
            run_id, wid = self.dice.choice(open_waits)
        else:
            run_id = self.a_run()
            run = m.get(self.stores.model, run_id)
            wid = self.dice.choice([(9, 9), *(wid for wid, _ in (run.waits if run else ()))])
        return partial(self.stores.wake, run_id, wid, self.dice.choice("xy"))

    def message(self) -> Act:
        kind = self.dice.choices(["start", "resume", "timeout", "cancel", "junk"], [6, 10, 5, 1, 2])[0]
        old = kind != "junk" and self.dice.random() < 0.3
        if kind in ("resume", "timeout"):
            run_id, wid, _ = self.wake().args
            return partial(self.stores.message, kind, run_id, wid, old=old)
        return partial(self.stores.message, kind, self.a_run(), self.dice.choice("EEEH"), old=old)

    def publish(self) -> Act:
        return partial(self.stores.publish, f"e{self.dice.randrange(12)}")

    def cancel(self) -> Act:
        return partial(self.stores.cancel, self.a_run())

    def delete(self) -> Act:
        return partial(self.stores.delete, self.a_run())

    def release(self) -> Act | None:
        claim = self.a_claim()
        return None if claim is None else partial(self.stores.release, claim)

    def renew(self) -> Act | None:
        claim = self.a_claim()
        return None if claim is None else partial(self.stores.renew, claim)

    def pump(self) -> Act:
        return partial(self.stores.pump)

    def tick(self) -> Act:
        return partial(self.stores.tick)

    def a_run(self) -> str:
        names: list[str] = [*self.runs, *(run_id for run_id, _ in self.stores.model.runs)]
        return self.dice.choice(names)

    def a_claim(self) -> Claimed | None:
        """Mostly one that still holds its run."""
        model = self.stores.model
        holding = [c for c in self.stores.tokens if getattr(m.get(model, c.run_id), "token", None) == c.model]
        pool = holding if holding and self.dice.random() < 0.95 else self.stores.tokens
        return self.dice.choice(pool) if pool else None

    def a_move(self, claim: Claimed) -> Move:
        run = m.get(self.stores.model, claim.run_id)
        seq = run.seq + self.dice.choice([1] * 20 + [0, 2]) if run else 1
        waits = dict(run.waits) if run else {}
        closes = tuple(self.a_close(wid, wait) for wid, wait in waits.items() if self.wants_to_close(wait))
        kind = self.dice.choice(["keep"] * 8 + ["park"] * 5 + ["end", "hand_back"])
        arms = tuple(self.an_arm() for _ in range(self.dice.choice([0, 0, 1, 1, 2])))
        following: tuple[Any, ...] = (kind,)
        if kind == "end":
            following, arms = ("end", self.dice.choice(["completed", "error"])), ()
        elif kind == "park":
            closing = {c[0] for c in closes}
            waiting = arms or any(w.state == "open" and wid not in closing for wid, w in waits.items())
            following = ("park", self.dice.choice([None, None, 0, 1, 3]) if waiting else self.dice.choice([0, 1, 3]))
        ack = self.dice.choice([0, run.boxn if run else 0, self.dice.randint(0, run.boxn) if run else 0])
        # Who closes by an answer has read it.
        read = [c[0] for c in closes if c[1] == "read"]
        ack = max([ack, *(n for n, kind, wid, _ in (run.box if run else ()) if kind == "wake" and wid in read)])
        return Move(claim, seq, closes, arms, ack, following, self.dice.random() < 0.5)

    def wants_to_close(self, wait: Any) -> bool:
        return self.dice.random() < (0.05 if wait.state == "closed" else 0.5)

    def a_close(self, wid: Any, wait: Any) -> tuple[Any, ...]:
        right = "read" if wait.state == "resolved" else "event" if wait.cand is not None else "timeout"
        why = right if self.dice.random() < 0.85 else self.dice.choice(["read", "event", "timeout", "cut"])
        want = wait.by if why == "read" else (wait.cand or 99) if why == "event" else None
        return wid, why, want

    def an_arm(self) -> tuple[Any, Any]:
        self.waits += 1
        kind = self.dice.choice(["hand", "event", "event", "event", "child"])
        wid = (0, self.waits)
        if kind != "event":
            return wid, m.Wait(kind)
        key, expr = self.dice.choice([("k", False), ("k", False), ("k", True), (None, False), (None, True)])
        return wid, m.Wait("event", "pay", key, expr, self.dice.random() < 0.15)


class Crowd(Walk):
    """Many runs wait for one event each, so that it reaches most of them later than the first."""

    runs = tuple("abcdefg")
    weights: ClassVar = Walk.weights | {"gather": 8, "submit": 10, "claim": 3, "settle": 5, "publish": 8, "pump": 20}

    def __init__(self, seed: int, stores: Lockstep) -> None:
        super().__init__(seed, stores)
        for run_id in self.runs[1:]:
            self.stores.submit(run_id, "E")

    def gather(self) -> Act:
        return partial(self.all_wait)

    def all_wait(self) -> None:
        """Whatever can be claimed is, reads its answers and waits for one event more."""
        for run_id, run in self.stores.model.runs:
            if m.claimable(self.stores.model, run):
                self.stores.claim(run_id, fresh=True)
        for claim in self.stores.tokens:
            run = m.get(self.stores.model, claim.run_id)
            if run is not None and run.token == claim.model:
                self.stores.settle(self.a_wait(claim, run))

    def a_wait(self, claim: Claimed, run: Any) -> Move:
        closes = tuple(self.a_close(wid, wait) for wid, wait in run.waits if wait.state == "resolved" or wait.cand)
        key, by_filter = self.dice.choice([("k", False), ("k", True), (None, False)])
        arms = (
            (((0, self.waits + 1), m.Wait("event", "pay", key, by_filter, False)),) if run.status == "running" else ()
        )
        self.waits += 1
        return Move(claim, run.seq + 1, closes, arms, run.boxn, ("park", self.dice.choice([None, None, 1, 3])), True)


@pytest.mark.parametrize("cap", [None, 1, 2])
@pytest.mark.parametrize("tombstones", [True, False])
@pytest.mark.parametrize("grace", [0, 2])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_stores_agree_with_the_model(
    cap: int | None, tombstones: bool, grace: int, seed: int, tmp_path: Path, redis_url: str
) -> None:  # fmt: skip
    beside = None if seed % ON_REDIS else redis_url
    stores = Lockstep(tmp_path, cap=cap, grace=grace, tombstones=tombstones, redis_url=beside)
    go(Walk(seed, stores))


@pytest.mark.parametrize("cap", [None, 3])
@pytest.mark.parametrize("seed", range(CROWDS))
def test_the_stores_agree_with_the_model_where_many_wait_for_one_event(
    cap: int | None, seed: int, tmp_path: Path, redis_url: str
) -> None:
    go(Crowd(seed, Lockstep(tmp_path, cap=cap, grace=0, tombstones=True, redis_url=redis_url)))


def go(walk: Walk) -> None:
    """A whole walk; a difference tells how it came about."""
    try:
        for _ in range(STEPS):
            walk.step()
    except AssertionError as error:
        error.add_note("\n".join(walk.trace))
        raise
    finally:
        walk.stores.close()
