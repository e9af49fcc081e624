"""The memory and the SQLite store answer and hold what the model says, step by step."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.sim.lockstep import Claimed, Lockstep, Move
from tests.sim.protocol import model as m

SEEDS = 8
STEPS = 80
RUNS = ("a", "b", "c")


class Walk:
    """A seeded walk: what may happen next is drawn from what the model knows."""

    def __init__(self, seed: int, stores: Lockstep) -> None:
        self.dice, self.stores = Random(seed), stores
        self.waits = 0
        self.stores.submit("a", "E")
        self.stores.claim("a", fresh=True)
        self.done: list[Move] = []

    def step(self) -> str:
        names = ["submit", "claim", "settle", "wake", "publish", "cancel", "delete", "release", "renew", "pump", "tick"]
        name = self.dice.choices(names, [4, 10, 20, 6, 4, 1, 1, 1, 3, 6, 5])[0]
        return f"{name} {getattr(self, name)()}"

    def submit(self) -> object:
        run_id, flow = self.dice.choice(RUNS), self.dice.choice("EEEH")
        return self.stores.submit(run_id, flow), run_id, flow

    def claim(self) -> object:
        model = self.stores.model
        due = [run_id for run_id, run in model.runs if m.claimable(model, run)]
        run_id = self.dice.choice(due) if due and self.dice.random() < 0.9 else self.a_run()
        return self.stores.claim(run_id, fresh=self.dice.random() < 0.85), run_id

    def settle(self) -> object:
        if self.done and self.dice.random() < 0.1:
            move = self.dice.choice(self.done[-3:])
        else:
            claim = self.a_claim()
            if claim is None:
                return None
            move = self.a_move(claim)
            self.done.append(move)
        return self.stores.settle(move), move

    def wake(self) -> object:
        open_waits = [(k, wid) for k, run in self.stores.model.runs for wid, w in run.waits if w.state == "open"]
        if open_waits and self.dice.random() < 0.7:
            run_id, wid = self.dice.choice(open_waits)
        else:
            run_id = self.a_run()
            run = m.get(self.stores.model, run_id)
            wid = self.dice.choice([(9, 9), *(wid for wid, _ in (run.waits if run else ()))])
        return self.stores.wake(run_id, wid, self.dice.choice("xy")), run_id, wid

    def publish(self) -> object:
        return self.stores.publish(f"e{self.dice.randrange(12)}")

    def cancel(self) -> object:
        run_id = self.a_run()
        return self.stores.cancel(run_id), run_id

    def delete(self) -> object:
        run_id = self.a_run()
        return self.stores.delete(run_id), run_id

    def release(self) -> object:
        claim = self.a_claim()
        return claim and self.stores.release(claim), claim

    def renew(self) -> object:
        claim = self.a_claim()
        return claim and self.stores.renew(claim), claim

    def pump(self) -> object:
        return self.stores.pump()

    def tick(self) -> object:
        return self.stores.tick()

    def a_run(self) -> str:
        return self.dice.choice([*RUNS, *(run_id for run_id, _ in self.stores.model.runs)])

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


@pytest.mark.parametrize("cap", [None, 1, 2])
@pytest.mark.parametrize("tombstones", [True, False])
@pytest.mark.parametrize("grace", [0, 2])
def test_the_stores_agree_with_the_model(cap: int | None, tombstones: bool, grace: int) -> None:
    for seed in range(SEEDS):
        with tempfile.TemporaryDirectory() as folder:
            stores = Lockstep(Path(folder), cap=cap, grace=grace, tombstones=tombstones)
            walk, trace = Walk(seed, stores), []
            try:
                for _ in range(STEPS):
                    trace.append(walk.step())
                    stores.compare()
            except BaseException:
                print("\n".join(trace))  # noqa: T201 - the way to the difference
                raise
            finally:
                stores.close()
