"""One flow, driven in every way there is: the outcome and the effects are the same, and nothing is left behind.

``PLAITA_FUZZ_SEEDS`` (a number, or ``from:to``) makes the search longer.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest

from plaita.base.errors import FlowLoadError
from plaita.core.calls import NodeExecution
from plaita.core.flow import Flow
from plaita.engine.delta import restore, take_delta
from plaita.engine.effects import Call, Done, Effects, Event, Failed, Offer, Raised, Returned, Wake
from plaita.engine.failure import Failure
from plaita.engine.machine import Conditions, Run, advance, next_due, open_calls, start
from plaita.node.basic import Node
from plaita.node.registry import NodeRegistry
from plaita.testing.simulation.random_flows import Generated, generate, weigh

SEEDS = 300
CHUNK = 25
STEPS_MAX = 3_000
NEVER = 10**15
TIMES = re.compile(r"\d{13}")


class Outside(Node):
    """Performed by the test."""

    node_type: ClassVar[str] = "outside"
    provides: ClassVar[frozenset[str] | None] = frozenset({"seen"})
    input: Any = None


def registry() -> NodeRegistry:
    found = NodeRegistry()
    found.register(Outside)
    return found


@dataclass(frozen=True)
class Mode:
    """How the machine is driven. ``restless``: restored before every advance; ``doubting``: a call whose result was
    lost in a crash is performed again."""

    fuel: int = 2000
    restless: bool = False
    doubting: bool = False
    now_ms: int = 1_700_000_000_000
    colour: str = "red"


MODES = {
    "plain": Mode(),
    "single": Mode(fuel=1),
    "restored": Mode(restless=True),
    "single and restored": Mode(fuel=1, restless=True),
    "doubting": Mode(fuel=3, restless=True, doubting=True),
}
ELSEWHERE = Mode(now_ms=1_800_000_000_777, colour="blue")


@dataclass
class Play:
    """One execution to its end, with everything outside decided by hashes of ids."""

    flow: Flow
    value: dict[str, Any]
    seed: int
    mode: Mode
    store: dict[str, bytes] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    asked: dict[str, Event] = field(default_factory=dict)
    waits: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    effects: list[str] = field(default_factory=list)
    ended: Done | Failed | None = None
    healed: bool = False

    def __post_init__(self) -> None:
        self.now_ms = self.committed_ms = self.mode.now_ms
        self.run: Run = start(self.flow.program, self.conditions(), self.value, now_ms=self.now_ms)

    def conditions(self) -> Conditions:
        return Conditions("run", {"COLOUR": self.mode.colour}, fuel=self.mode.fuel, redrive=self.seed % 3 == 0)

    def to_the_end(self) -> Play:
        self.step([])
        return self.go_on()

    def go_on(self) -> Play:
        for _ in range(STEPS_MAX):
            if self.ended is not None:
                return self
            self.act()
        raise AssertionError("the run does not end")

    def act(self) -> None:
        """Let one thing happen: calls come back, a wait is answered, or time passes."""
        able = [i for _, i in sorted((weigh(self.seed, i), i) for i in self.calls) if self.done_at(i) <= self.now_ms]
        if able:
            # Results arrive one by one or together.
            self.perform(able if weigh(self.seed, able[0], "together") % 3 == 0 else able[:1])
            return
        answers = sorted((weigh(self.seed, i), i) for i in self.waits)
        times = [self.done_at(i) for i in self.calls]
        due = min([t for t in (next_due(self.run), *times) if t is not None], default=NEVER)
        if answers and (due == NEVER or answers[0][0] % 3):
            self.answer(answers[0][1])
        else:
            assert due < NEVER, "nothing can happen any more"
            self.now_ms = max(self.now_ms, due)
            self.step([])

    def done_at(self, call_id: str) -> int:
        """When the outside is done with a call: at once, later, or never."""
        speed, issued = weigh(self.seed, call_id, "speed") % 100, self.calls[call_id].issued_ms
        if self.healed or speed >= 30:
            return issued
        return NEVER if speed < 5 else issued + 1000

    def perform(self, call_ids: list[str]) -> None:
        if self.mode.doubting:
            self.restore()
        results = [self.result_of(self.calls[i]) for i in call_ids]
        assert results == [self.asked[i] for i in call_ids], "a repeated call is the same request"
        self.effects += [f"{i}!{self.calls[i].attempt}={digest(r)}" for i, r in zip(call_ids, results, strict=True)]
        self.step(results)

    def result_of(self, call: Call) -> Event:
        view = NodeExecution(call, "i")
        fate = 99 if self.healed else weigh(self.seed, call.id, call.attempt) % 100
        try:
            given = view.evaluate(call.node.model.input)
        except ValueError as e:
            return Raised(call.id, Failure("node_error", -520, str(e)))
        if fate < 12:
            return Raised(call.id, Failure("node_error", -520, "broken pipe", retryable=True))
        if fate < 16:
            return Raised(call.id, Failure("node_error", -520, "permanent"))
        if fate < 18:
            return Raised(call.id, Failure("error_result", "BUSINESS", "said no", "error_result"))
        return Returned(call.id, [given, call.node.id], {"seen": call.node.id} if fate % 5 == 0 else {})

    def answer(self, wait_id: str) -> None:
        self.effects.append(f"{wait_id} answered")
        data = {"v": weigh(wait_id) % 7, "ok": True}
        if self.waits[wait_id] == "event":
            self.step([Offer(wait_id, 1, {"ok": False}), Offer(wait_id, 2, data)])
        else:
            self.step([Wake(wait_id, {"approved": True})])
        if self.ended is None and weigh(wait_id) % 5 == 0:
            self.step([Wake(wait_id, "late")])

    def restore(self, *, reopened: bool = False) -> None:
        """The process died right after its last commit and is back at once; down time would be no active time."""
        now_ms = self.now_ms if reopened else self.committed_ms
        self.run = restore(
            self.flow.program, self.conditions(), self.value, self.store, now_ms=now_ms, reopened=reopened
        )
        self.calls = {call.id: call for call in open_calls(self.run)}
        if not reopened:
            assert set(self.run.waits) == set(self.waits)

    def step(self, events: list[Event]) -> None:
        while True:
            if self.mode.restless and self.store:
                self.restore()
            effects = advance(
                self.run, events, now_ms=self.now_ms, dice=weigh(self.seed, self.now_ms - self.mode.now_ms) % 100 / 100
            )
            for event in events:
                self.calls.pop(event.id, None)  # type: ignore[union-attr]
            self.commit(effects)
            events = []
            if not effects.more or self.ended is not None:
                return

    def commit(self, effects: Effects) -> None:
        self.committed_ms = self.now_ms
        for key, value in take_delta(self.run).items():
            if value is None:
                self.store.pop(key, None)
            else:
                self.store[key] = value
        for closed in effects.closed:
            del self.waits[closed.id]
        for opened in effects.opened.values():
            assert opened.id not in self.seen, "no wait id twice"
            self.seen.add(opened.id)
            self.waits[opened.id] = opened.spec.kind
        for dropped in effects.drops:
            self.calls.pop(dropped, None)
        for call in effects.calls.values():
            name = f"{call.id}!{call.attempt}"
            assert name not in self.seen or self.healed, "no attempt twice"
            self.seen.add(name)
            self.calls[call.id] = call
            self.asked[call.id] = self.result_of(call)
        self.effects += [f"detached {d.key} {digest(d.document)}" for d in effects.detached]
        self.ended = effects.ended
        if isinstance(self.ended, Done):
            assert list(self.store) == ["h"], "nothing but the header stays"
            assert not self.waits and not self.calls
        if self.ended is None:
            assert set(self.calls) == set(self.run.calls)

    def reopen(self) -> Play:
        """The operator has mended what is outside and tries again."""
        self.healed, self.ended = True, None
        self.waits.clear()
        self.restore(reopened=True)
        self.asked = {i: self.result_of(call) for i, call in self.calls.items()}
        mode, self.mode = self.mode, replace(self.mode, restless=False)  # a reopened run is not reopened again
        self.step([])
        self.mode = mode
        return self.go_on()

    def outcome(self) -> dict[str, Any]:
        match self.ended:
            case Done(output):
                found: dict[str, Any] = {"output": output}
            case Failed(failure):
                found = {"error": failure.as_json(), "cause": failure.cause is not None}
            case None:
                raise AssertionError("the run goes on")
        return {**found, "effects": sorted(self.effects)}


def digest(value: object) -> str:
    return format(weigh(TIMES.sub("T", repr(value))), "x")


def play(made: Generated, flow: Flow, seed: int, mode: Mode) -> list[dict[str, Any]]:
    run = Play(flow, made.value, seed, mode).to_the_end()
    outcomes = [run.outcome()]
    if isinstance(run.ended, Failed):
        outcomes.append(run.reopen().outcome())
    return outcomes


def text_of(outcomes: list[dict[str, Any]]) -> str:
    return TIMES.sub("T", json.dumps(outcomes, ensure_ascii=False, indent=1))


def chunks() -> Iterator[range]:
    first, _, last = os.environ.get("PLAITA_FUZZ_SEEDS", str(SEEDS)).rpartition(":")  # noqa: TID251 - the length of a search
    for begin in range(int(first or 0), int(last), CHUNK):
        yield range(begin, min(begin + CHUNK, int(last)))


@pytest.mark.parametrize("seeds", list(chunks()), ids=lambda r: f"{r.start}-{r.stop - 1}")
def test_a_flow_ends_the_same_however_often_its_process_dies(seeds: range) -> None:
    for seed in seeds:
        made = generate(seed)
        flow = Flow.model_validate(made.flow, registry=registry())
        expected = text_of(play(made, flow, seed, MODES["plain"]))
        for name, mode in MODES.items():
            assert text_of(play(made, flow, seed, mode)) == expected, f"seed {seed}, {name}"
        if not made.reads_outside:
            assert text_of(play(made, flow, seed, ELSEWHERE)) == expected, f"seed {seed}, another time and place"


def test_the_generated_flows_reach_every_kind_of_end() -> None:
    kinds: set[str] = set()
    loaded = 0
    for seed in range(60):
        made = generate(seed)
        try:
            flow = Flow.model_validate(made.flow, registry=registry())
        except FlowLoadError as e:
            raise AssertionError(f"seed {seed}: {e}") from e
        loaded += 1
        first = play(made, flow, seed, MODES["plain"])[0]
        kinds.add(first["error"]["kind"] if "error" in first else "done")
    assert loaded == 60
    assert {"done", "node_error", "timeout", "error_result"} <= kinds
