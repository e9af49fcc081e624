"""Drives the machine through a script: wakes, crashes, time; single-stepped, restored and plain.

The store is a dict: a delta is applied to it as a backend would, and a crash rebuilds the run from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from plaita.core.calls import NodeExecution, failure_of
from plaita.core.flow import Flow
from plaita.engine.delta import restore, take_delta
from plaita.engine.effects import Call, Done, Effects, Event, Failed, Raised, Returned, Wake
from plaita.engine.failure import Failure
from plaita.engine.machine import Conditions, Run, advance, next_due, start


@dataclass
class World:
    """One execution with its outside. ``restless``: restored from the store before every advance."""

    flow: Flow
    value: Any
    restless: bool = False
    fuel: int = 2000
    redrive: bool = False
    env: dict[str, str] = field(default_factory=dict)
    now_ms: int = 1_000_000
    store: dict[str, bytes] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    open_calls: dict[str, Call] = field(default_factory=dict)
    effect_ids: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    calls: int = 0
    ended: Done | Failed | None = None
    perform: Callable[[Call], Returned | Raised] | None = None

    def __post_init__(self) -> None:
        self.run = self.begin()
        self.step([])

    def conditions(self) -> Conditions:
        return Conditions("x1", self.env, fuel=self.fuel, redrive=self.redrive)

    def begin(self) -> Run:
        return start(self.flow.program, self.conditions(), self.value, now_ms=self.now_ms)

    def crash(self) -> None:
        """The process dies: the run is rebuilt, open calls are issued again."""
        self.run = restore(self.flow.program, self.conditions(), self.value, self.store, now_ms=self.now_ms)
        self.open_calls = {call_id: call for call_id, call in self._reissued()}

    def _reissued(self) -> Sequence[tuple[str, Call]]:
        from plaita.engine.machine import open_calls

        return [(call.id, call) for call in open_calls(self.run)]

    def step(self, events: Sequence[Event]) -> Effects:
        """One advance with its commit; goes on while fuel runs out."""
        while True:
            if self.restless and self.store and self.ended is None:
                self.crash()
            effects = advance(self.run, events, now_ms=self.now_ms)
            for event in events:
                if isinstance(event, Returned | Raised):
                    self.open_calls.pop(event.id, None)
            self._commit(effects)
            events = []
            if not effects.more or self.ended is not None:
                return effects

    def _commit(self, effects: Effects) -> None:
        for key, value in take_delta(self.run).items():
            if value is None:
                self.store.pop(key, None)
            else:
                self.store[key] = value
        for closed in effects.closed:
            del self.labels[closed.id]
        for opened in effects.opened.values():
            assert opened.id not in self.labels
            self.labels[opened.id] = opened.address
            self.effect_ids.append(opened.id)
        for dropped in effects.drops:
            self.open_calls.pop(dropped, None)
        for call in effects.calls.values():
            self.open_calls[call.id] = call
            self.effect_ids.append(f"{call.id}!{call.attempt}")
        if effects.ended is not None:
            self.ended = effects.ended

    def settle_calls(self) -> None:
        """Perform open calls until none is left."""
        while self.open_calls and self.ended is None:
            _, call = self.open_calls.popitem()
            self.calls += 1
            self.step([self.perform(call) if self.perform else perform_inline(call)])

    def waits(self) -> list[str]:
        return sorted(self.labels.values())

    def wake(self, address: str, data: Any) -> None:
        wait_id = next(w for w, label in self.labels.items() if label == address)
        self.answered.append(wait_id)
        self.step([Wake(wait_id, data)])
        self.settle_calls()

    def rewake(self, data: Any) -> None:
        """A duplicate of the wake before."""
        self.step([Wake(self.answered[-1], data)])

    def elapse(self, ms: int) -> None:
        self.now_ms += ms
        self.step([])
        self.settle_calls()

    def until_quiet(self) -> None:
        """Let timers fire until only waits are open."""
        self.settle_calls()
        while self.ended is None and (due := next_due(self.run)) is not None:
            if self.labels and not any(f.state == "b" for f in self.run.frames):
                return
            self.elapse(max(0, due - self.now_ms))

    @property
    def failure(self) -> Failure:
        assert isinstance(self.ended, Failed), self.ended
        return self.ended.failure

    @property
    def output(self) -> Any:
        assert isinstance(self.ended, Done), self.ended
        return self.ended.output


def perform_inline(call: Call) -> Returned | Raised:
    """The node's ``execute`` in this thread."""
    view = NodeExecution(call, "i")
    try:
        return view.returned(call.node.model.execute(view))
    except Exception as e:  # noqa: BLE001 - the node is the test's own
        return Raised(call.id, failure_of(e, call))
