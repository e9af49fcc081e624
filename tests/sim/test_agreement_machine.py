"""Hypothesis drives the model and every store in lockstep and shrinks what they disagree about."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.sim.lockstep import Claimed, Lockstep, Move
from tests.sim.protocol import model as m

RUNS = ("a", "b", "c")
EVENTS = st.sampled_from([f"e{n}" for n in range(6)])
CORRELATIONS = (("k", False), ("k", True), (None, False), (None, True))
WHYS = ("read", "event", "timeout", "cut")
NO_WAIT = (9, 9)
SHORT = 30


def of_machine(look: Callable[[AgreementMachine], Any]) -> st.SearchStrategy[Any]:
    """One of what the machine has at that moment."""
    return st.runner().flatmap(lambda machine: st.sampled_from(look(machine)))


@st.composite
def arms(draw: st.DrawFn) -> list[Any]:
    """Up to two waits to open; ids are given when they are armed."""
    found = []
    for kind in draw(st.lists(st.sampled_from(["event", "event", "hand", "child"]), max_size=2)):
        if kind == "event":
            key, by_filter = draw(st.sampled_from(CORRELATIONS))
            found.append(m.Wait("event", "pay", key, by_filter, draw(st.booleans())))
        else:
            found.append(m.Wait(kind))
    return found


@st.composite
def closes(draw: st.DrawFn, waits: dict[Any, Any]) -> tuple[Any, ...]:
    """Closes of some waits: mostly as their state asks, at times for another reason, or of one that is closed."""
    found = []
    for wid, wait in waits.items():
        if not draw(st.booleans()) or (wait.state == "closed" and draw(st.integers(0, 9)) < 9):
            continue
        right = "read" if wait.state == "resolved" else "event" if wait.cand is not None else "timeout"
        why = draw(st.sampled_from((right,) * 12 + WHYS))
        found.append((wid, why, wait.by if why == "read" else (wait.cand or 99) if why == "event" else None))
    return tuple(found)


@st.composite
def moves(draw: st.DrawFn, kind: str) -> Move:
    """A settle of one of the claims as a holder could send it, in or out of turn."""
    machine = draw(st.runner())
    late = draw(st.integers(0, 9)) == 9
    claim = draw(st.sampled_from(machine.stores.tokens if late else machine.holding()))
    run = m.get(machine.stores.model, claim.run_id)
    waits = dict(run.waits) if run else {}
    closing = draw(closes(waits))
    arming = [] if kind == "end" else draw(arms())
    following: tuple[Any, ...] = (kind,)
    if kind == "end":
        following = ("end", draw(st.sampled_from(["completed", "error"])))
    elif kind == "park":
        closed = {close[0] for close in closing}
        waiting = arming or any(w.state == "open" and wid not in closed for wid, w in waits.items())
        timers: list[int | None] = [None, 0, 1, 3] if waiting else [0, 1, 3]
        following = ("park", draw(st.sampled_from(timers)))
    box = run.box if run else ()
    # Whoever closes a wait by its answer has read that answer.
    read = {close[0] for close in closing if close[1] == "read"}
    least = max([0, *(number for number, word, wid, _ in box if word == "wake" and wid in read)])
    last = run.boxn if run else 0
    ack = max(least, draw(st.one_of(st.just(last), st.integers(0, last))))
    seq = (run.seq if run else 0) + draw(st.sampled_from([1] * 12 + [0, 2]))
    return Move(claim, seq, closing, machine.with_ids(arming), ack, following, draw(st.booleans()))


class AgreementMachine(RuleBasedStateMachine):
    """Every rule is one verb at every store; after each they must hold the same."""

    redis_url: ClassVar[str | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.stores: Any = None
        self.settled: list[Move] = []
        self.armed = 0

    @initialize(cap=st.sampled_from([None, 1]), grace=st.sampled_from([0, 2]), tombstones=st.booleans())
    def open_the_stores(self, cap: int | None, grace: int, tombstones: bool) -> None:
        self.stores = Lockstep(
            Path(self.folder.name), cap=cap, grace=grace, tombstones=tombstones, redis_url=self.redis_url
        )
        for run_id in RUNS:
            self.stores.submit(run_id, "E")
            self.stores.claim(run_id, fresh=True)

    def teardown(self) -> None:
        if self.stores is not None:
            self.stores.close()
        self.folder.cleanup()

    def with_ids(self, waits: list[Any]) -> tuple[Any, ...]:
        """A wait id is never used again."""
        first, self.armed = self.armed + 1, self.armed + len(waits)
        return tuple(((0, number), wait) for number, wait in enumerate(waits, first))

    def names(self) -> list[str]:
        return sorted({*RUNS, *(run_id for run_id, _ in self.stores.model.runs)})

    def due(self) -> list[str]:
        return [run_id for run_id, run in self.stores.model.runs if m.claimable(self.stores.model, run)]

    def there(self) -> list[str]:
        return [run_id for run_id, _ in self.stores.model.runs]

    def failed(self) -> list[str]:
        return [run_id for run_id, run in self.stores.model.runs if run.status == "error"]

    def holding(self) -> list[Claimed]:
        model = self.stores.model
        return [c for c in self.stores.tokens if getattr(m.get(model, c.run_id), "token", None) == c.model]

    def waits(self) -> list[tuple[str, Any]]:
        return [(run_id, wid) for run_id, run in self.stores.model.runs for wid in (NO_WAIT, *dict(run.waits))]

    def open_waits(self) -> list[tuple[str, Any]]:
        model = self.stores.model
        return [(run_id, wid) for run_id, run in model.runs for wid, wait in run.waits if wait.state == "open"]

    def settle(self, move: Move) -> None:
        self.settled.append(move)
        self.stores.settle(move)

    @rule(run_id=st.sampled_from(RUNS), flow=st.sampled_from("EEH"))
    def submit(self, run_id: str, flow: str) -> None:
        self.stores.submit(run_id, flow)

    @precondition(lambda self: self.due())
    @rule(run_id=of_machine(lambda self: self.due()), fresh=st.sampled_from([True, True, True, False]))
    def claim(self, run_id: str, fresh: bool) -> None:
        self.stores.claim(run_id, fresh=fresh)

    @precondition(lambda self: self.holding())
    @rule(move=moves("keep"))
    def settle_and_keep(self, move: Move) -> None:
        self.settle(move)

    @precondition(lambda self: self.holding())
    @rule(move=moves("park"))
    def settle_and_park(self, move: Move) -> None:
        self.settle(move)

    @precondition(lambda self: self.holding())
    @rule(move=st.sampled_from(["end", "hand_back"]).flatmap(moves))
    def settle_and_leave(self, move: Move) -> None:
        self.settle(move)

    @precondition(lambda self: self.settled)
    @rule(move=of_machine(lambda self: self.settled[-3:]))
    def send_a_settle_again(self, move: Move) -> None:
        self.stores.settle(move)

    @precondition(lambda self: self.stores.tokens)
    @rule(verb=st.sampled_from(["renew", "release"]), claim=of_machine(lambda self: self.stores.tokens[-4:]))
    def renew_or_release(self, verb: str, claim: Claimed) -> None:
        getattr(self.stores, verb)(claim)

    @precondition(lambda self: self.open_waits())
    @rule(wait=of_machine(lambda self: self.open_waits()), data=st.sampled_from("xy"))
    def wake(self, wait: tuple[str, Any], data: str) -> None:
        self.stores.wake(*wait, data)

    @rule(event_id=EVENTS)
    def publish(self, event_id: str) -> None:
        self.stores.publish(event_id)

    @precondition(lambda self: self.failed())
    @rule(run_id=of_machine(lambda self: self.failed()))
    def reopen(self, run_id: str) -> None:
        self.stores.reopen(run_id)

    @precondition(lambda self: self.there())
    @rule(kind=st.sampled_from(["continue", "retry"]), run_id=of_machine(lambda self: self.there()))
    def send_a_nudge(self, kind: str, run_id: str) -> None:
        self.stores.nudge(kind, run_id)

    @rule(verb=st.sampled_from(["cancel", "delete", "reopen"]), run_id=of_machine(lambda self: self.names()))
    def operate(self, verb: str, run_id: str) -> None:
        getattr(self.stores, verb)(run_id)

    @rule(
        kind=st.sampled_from(["start", "cancel"]),
        run_id=of_machine(lambda self: self.names()),
        flow=st.sampled_from("EEH"),
        old=st.booleans(),
    )
    def send_a_start_or_cancel(self, kind: str, run_id: str, flow: str, old: bool) -> None:
        self.stores.message(kind, run_id, flow, old=old)

    @rule(
        kind=st.sampled_from(["resume", "resume", "timeout"]),
        wait=of_machine(lambda self: [*self.waits(), ("unknown", NO_WAIT)]),
        old=st.booleans(),
    )
    def send_an_answer_or_an_end(self, kind: str, wait: tuple[str, Any], old: bool) -> None:
        self.stores.message(kind, *wait, old=old)

    @rule()
    def send_what_makes_no_sense(self) -> None:
        self.stores.message("junk", "a", None, old=False)

    @precondition(lambda self: self.waits())
    @rule(wait=of_machine(lambda self: self.waits()))
    def come_too_late_or_too_early(self, wait: tuple[str, Any]) -> None:
        self.stores.claim(wait[0], fresh=True)
        self.stores.wake(*wait, "x")

    @precondition(lambda self: self.stores.model.out)
    @rule()
    def carry_the_outbox_on(self) -> None:
        self.stores.pump()

    @rule(ticks=st.integers(1, 3))
    def let_time_pass(self, ticks: int) -> None:
        for _ in range(ticks):
            self.stores.tick()

    @invariant()
    def the_stores_hold_what_the_model_holds(self) -> None:
        if self.stores is not None:
            self.stores.compare()


@pytest.mark.timeout(1200)
def test_the_stores_agree_with_the_model_in_every_order_of_steps(redis_of_session: str) -> None:
    class OnServers(AgreementMachine):
        redis_url = redis_of_session

    # The short form takes the same examples each time; here each of them is a hundred steps of four stores.
    examples = SHORT if settings().derandomize else settings().max_examples
    chosen = settings(stateful_step_count=100, max_examples=examples)
    run_state_machine_as_test(OnServers, settings=chosen)
