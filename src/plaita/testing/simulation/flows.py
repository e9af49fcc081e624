"""What runs in a world: small flows that provoke the protocol, and random ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from plaita.base.ids import start_digest
from plaita.base.json import decode, encode
from plaita.core.closure import close_over
from plaita.core.flow import Flow
from plaita.core.imports import import_nodes
from plaita.engine.program import Program
from plaita.ports.runs import Submission
from plaita.ports.values import RunId
from plaita.testing.simulation.nodes import BLOCKING, EFFECT
from plaita.testing.simulation.random_flows import Dice, generate

NODES = "plaita.testing.simulation.nodes"
KEYS = ("k0", "k1")
STRATEGIES = ("any", "majority")
RANDOM_NODES_MAX = 10
Document = dict[str, Any]
Sort = tuple[str, Callable[["Dice"], Document]]


@dataclass(frozen=True, slots=True)
class Planned:
    """A run to be. ``calm``: its outcome follows from its answers alone, whatever the order and time of things."""

    run_id: RunId
    kind: str
    calm: bool
    program: Program
    closure: str
    document: bytes
    data: bytes

    @property
    def value(self) -> Any:
        return decode(self.data)

    @property
    def submission(self) -> Submission:
        return Submission(
            self.run_id, start_digest(self.closure, self.data), self.data, f"flow-{self.run_id}", self.closure,
            imports=(NODES,),
        )  # fmt: skip


def plan_runs(dice: Dice, count: int) -> list[Planned]:
    """So many runs: random flows, and small ones of which one sort is the theme of the world."""
    import_nodes(NODES)
    theme = dice.pick(PROVOKING)
    planned = [_planned(dice, RunId(f"r{n}"), theme) for n in range(count)]
    # Two runs of one sort make fan-outs longer than a chunk.
    crowd = [_plan(RunId(f"c{n}"), "crowd", False, crowd_flow(dice), {"key": "k0"}) for n in range(dice.pick((0, 4)))]
    return [*planned, *crowd]


def _planned(dice: Dice, run_id: RunId, theme: Sort) -> Planned:
    if dice.chance(65):
        name, make = theme if dice.chance(50) else dice.pick(PROVOKING)
        return _plan(run_id, name, False, make(dice), {"key": dice.pick(KEYS), "list": [1, 2, 3]})
    made = generate(dice.below(10**6), dice.pick((EFFECT, EFFECT, BLOCKING)), RANDOM_NODES_MAX)
    calm = dice.chance(70) and not made.reads_outside
    flow = calmed(made.flow) if calm else made.flow
    return _plan(run_id, "calm" if calm else "random", calm, flow, made.value)


def _plan(run_id: RunId, kind: str, calm: bool, document: Document, value: Any) -> Planned:
    flow = Flow.model_validate(document)
    closure, stored = close_over(flow)
    return Planned(run_id, kind, calm, flow.program, closure, stored, encode(value))


def calmed(value: Any) -> Any:
    """A flow without anything that looks at the time, or at which of two branches is first."""
    if isinstance(value, list):
        return [calmed(item) for item in value]
    if not isinstance(value, dict):
        return value
    timed = {"timeout", "timeoutHandler", "subscriptionTimeout", "eventFilter"}
    found = {key: calmed(item) for key, item in value.items() if key not in timed}
    if found.get("type") in ("parallel", "map"):
        found["onBranchError"] = "collect"
    if found.get("type") == "event":
        # Nobody publishes these: such a wait is answered by its id.
        found["eventType"] = f"calm {found['eventType']}"
    if found.get("type") == "approval":
        found["subscriptionTimeout"] = 10**8
    return found


def chain(*nodes: Document, output: Any = None) -> Document:
    """A flow of nodes one after another."""
    row: list[Document] = [{"id": "s", "type": "start"}, *nodes, {"id": "e", "type": "end"}]
    for here, following in pairwise(row):
        here["next"] = following["id"]
    row[-1]["output"] = output if output is not None else [f'$NODE["{n["id"]}"]' for n in nodes]
    return {"nodes": row}


def parallel(**branches: Document) -> Document:
    named = [{"name": name, "flow": flow} for name, flow in branches.items()]
    return {"id": "p", "type": "parallel", "branches": named}


def effect(node_id: str, given: Any = "$INPUT.key", **more: Any) -> Document:
    return {"id": node_id, "type": EFFECT, "input": given, **more}


def event(node_id: str, event_type: str, **more: Any) -> Document:
    return {"id": node_id, "type": "event", "eventType": event_type, **more}


def paid(node_id: str, **more: Any) -> Document:
    """A wait that is correlated by the run's key."""
    return event(node_id, "pay", correlation="$INPUT.key", **more)


def approval(node_id: str, strategy: str, **more: Any) -> Document:
    people = {"approvers": ["ann", "bob", "eve"], "approvalStrategy": strategy}
    return {"id": node_id, "type": "approval", "approvalTitle": "well?", **people, **more}


def delay(node_id: str, seconds: int) -> Document:
    return {"id": node_id, "type": "delay", "delaySeconds": seconds}


def pay_flow(dice: Dice) -> Document:
    """An event that may come before its wait, against a deadline."""
    return chain(effect("a"), paid("w", subscriptionTimeout=2 + dice.below(15)), effect("b", "$NODE.w"))


def race_flow(dice: Dice) -> Document:
    """An answer against a deadline, and a timer beside it."""
    asked = chain(
        approval("ask", dice.pick(STRATEGIES), subscriptionTimeout=3 + dice.below(12)), effect("b", "$NODE.ask")
    )
    return chain(parallel(asked=asked, timed=chain(delay("d", 1 + dice.below(6)), effect("c"))))


def twice_flow(dice: Dice) -> Document:
    """Two waits for the same events."""
    if dice.chance(50):
        return chain(paid("w1"), effect("a", "$NODE.w1"), paid("w2", subscriptionTimeout=9), effect("b", "$NODE.w2"))
    return chain(event("w1", "news"), event("w2", "news", subscriptionTimeout=12), effect("b", "$NODE.w2"))


def judged_flow(dice: Dice) -> Document:
    """A wait that judges its events beside one that takes any."""
    picky = chain(paid("w", eventFilter={"ok": True}, subscriptionTimeout=4 + dice.below(20)), effect("a", "$NODE.w"))
    if dice.chance(40):
        return picky
    return chain(parallel(picky=picky, any=chain(paid("v", subscriptionTimeout=4 + dice.below(20)), effect("b"))))


def shared_flow(dice: Dice) -> Document:
    """Two waits that may take the same event."""
    return chain(parallel(one=chain(paid("w", reuse=True)), two=chain(paid("v", reuse=dice.chance(60)), effect("b"))))


def crowd_flow(dice: Dice) -> Document:
    """Many of these wait for one event."""
    return chain(event("w", "crowd", subscriptionTimeout=5 + dice.below(30)), effect("a", "$NODE.w.status"))


def busy_flow(dice: Dice) -> Document:
    """Mail comes while a call is under way for longer than a lease."""
    waits = chain(dice.pick((approval("ask", dice.pick(STRATEGIES)), paid("w"), event("w", "news"))), effect("b"))
    return chain(parallel(slow=chain(effect("slow", **_patience(dice))), waits=waits), effect("c"))


def killer_flow(dice: Dice) -> Document:
    """A node that ends its process."""
    deadly = chain(effect("kill", ["$F.now()", "$INPUT.key"]), effect("b"))
    return chain(parallel(deadly=deadly, waits=chain(paid("w")))) if dice.chance(40) else deadly


def retry_flow(dice: Dice) -> Document:
    """A call that fails for a while."""
    retry = {"strategy": "abort", "retry": {"attempts": 3, "base": 300, "jitter": 0.5}}
    return chain(effect("fail", **({"errorHandler": retry} if dice.chance(60) else {})), effect("b", "$NODE.fail"))


def spread_flow(dice: Dice) -> Document:
    """Many calls at once, in threads and on the loop."""
    inner = chain(effect("a", "$INPUT.item"), {"id": "thread", "type": BLOCKING, "input": "$INPUT.index"})
    return chain({"id": "m", "type": "map", "concurrent": True, "collection": "$INPUT.list", "childFlow": inner})


def loose_flow(dice: Dice) -> Document:
    """A branch that nobody joins."""
    node = parallel(
        joined=chain(effect("a")), loose=chain(delay("d", 1), effect("b"), paid("w", subscriptionTimeout=5))
    )
    return chain({**node, "joinBranches": ["joined"]})


def _patience(dice: Dice) -> Document:
    return {"timeout": 6_000, "timeoutHandler": {"strategy": "continue"}} if dice.chance(30) else {}


PROVOKING: tuple[Sort, ...] = (
    ("pay", pay_flow), ("judged", judged_flow), ("race", race_flow), ("twice", twice_flow), ("judged", judged_flow),
    ("shared", shared_flow), ("busy", busy_flow), ("killer", killer_flow), ("retry", retry_flow),
    ("spread", spread_flow), ("loose", loose_flow),
)  # fmt: skip
