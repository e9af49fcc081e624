"""The host of ``parallel`` and of a concurrent ``map``: several kids at once, opened only as room and fuel allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from plaita.base.errors import InputError
from plaita.base.json import Json
from plaita.engine import failing
from plaita.engine.expression.scope import ABSENT
from plaita.engine.failure import Failure
from plaita.engine.frames import Frame
from plaita.engine.hosts import Store, admit_input, base_of, enter, hand_over
from plaita.engine.program import CNode, Eval, Graph, Step
from plaita.engine.steps import deadline_of


@dataclass(slots=True)
class FanState:
    """``todo`` are the keys to open, ``next`` how many were; ``out`` the values by position; ``new`` the unsaved."""

    todo: list[int]
    items: list[Json] | None
    base: str
    next: int = 0
    out: dict[int, Json] = field(default_factory=dict)
    new: list[int] = field(default_factory=list)
    stored_items: bool = False


class FanKind(Protocol):
    """What distinguishes ``parallel`` and a concurrent ``map``."""

    def begin(self, frame: Frame, base: str) -> tuple[list[int], list[Json] | None]:
        """Positions to open, and the collection if there is one; ``base`` is the address of the kids."""

    def graph(self, position: int) -> Graph:
        """The graph at a position."""

    def key(self, position: int) -> int | str:
        """What the address calls a position."""

    def position(self, key: int | str | None) -> int:
        """The position of a key."""

    def given(self, frame: Frame, state: FanState, position: int) -> Any:
        """The input of a kid, ``ABSENT`` to inherit."""

    def derivable(self) -> bool:
        """Can ``given`` be repeated at any time with the same answer?"""

    def result(self, state: FanState) -> Json:
        """The node's result in declaration order."""


class Fan:
    """The host of ``parallel`` and concurrent ``map``."""

    def __init__(self, kind: FanKind, *, collects: bool, room: int | Eval | None) -> None:
        self.kind, self.collects, self.room = kind, collects, room

    def step(self, cn: CNode) -> Step:
        kind = self.kind

        def step(frame: Frame) -> CNode | None:
            deadline_of(frame, cn)
            frame.pc = cn
            base = base_of(frame, cn)
            todo, items = kind.begin(frame, base)
            state = FanState(todo, items, base)
            if not todo:
                hand_over(frame, cn, kind.result(state))
                return None
            frame.acc = state
            frame.run.cont = self._open(frame, cn, state)
            return None

        return step

    def _open(self, frame: Frame, cn: CNode, state: FanState) -> Frame:
        position = state.todo[state.next]
        graph = self.kind.graph(position)
        given = admit_input(graph, self.kind.given(frame, state, position))
        state.next += 1
        kid = frame.run.open_frame(frame, cn, graph, self.kind.key(position), state.base)
        kid.begin(given)
        enter(kid)
        frame.run.fuel -= 1
        return kid

    def pump(self, host: Frame) -> Frame | None:
        state: FanState = host.acc
        cn = host.pc
        if cn is None or state is None or state.next >= len(state.todo) or len(host.kids) >= self._room(host):
            return None
        if host.run.fuel <= 0:
            host.run.ready.appendleft(host)
            host.run.effects.more = True
            return None
        kid = failing.outcome_of(cn, lambda: self._open(host, cn, state))
        if isinstance(kid, Failure):
            failing.fail(host.run, host, kid)
            return None
        return kid

    def _room(self, host: Frame) -> int:
        if self.room is None:
            return 1_000_000_000
        room = self.room if isinstance(self.room, int) else self.room(host)
        if isinstance(room, str) and room.isdigit():
            room = int(room)
        if isinstance(room, bool) or not isinstance(room, int) or room < 1:
            raise InputError("$.maxConcurrent", f"a whole number from 1 on is needed, not {room!r}")
        return room

    def child_done(self, kid: Frame, value: Json) -> CNode | None:
        host, key = kid.host, kid.key
        failing.close(kid.run, kid)
        if host is not None and host.pc is not None and self._take(host, key, value):
            hand_over(host, host.pc, self.kind.result(host.acc))
        return None

    def collect(self, host: Frame, key: int | str | None, failure: Failure) -> None:
        if host.pc is not None and self._take(host, key, {"error": failure.as_json()}):
            failing.go_to(host.run, host, host.pc, self.kind.result(host.acc), None)
            return
        # Finished it goes on, otherwise there is room for one more kid.
        host.run.ready.append(host)

    def _take(self, host: Frame, key: int | str | None, value: Json) -> bool:
        """Keep a kid's value; is it the last one?"""
        state: FanState = host.acc
        position = self.kind.position(key)
        state.out[position] = value
        state.new.append(position)
        host.run.touched[host] = None
        return len(state.out) == len(state.todo)

    def graph_of(self, key: int | str | None) -> Graph:
        return self.kind.graph(self.kind.position(key))

    def rank(self, key: int | str | None) -> int:
        return self.kind.position(key)

    def save(self, host: Frame) -> Store:
        state: FanState = host.acc
        out: Store = {"a": [state.todo if state.items is None else len(state.todo), state.next, state.base]}
        if state.items is not None and not state.stored_items:
            out["c"] = state.items
            state.stored_items = True
        for position in state.new:
            out[f"m{position}"] = state.out[position]
        state.new = []
        return out

    def load(self, host: Frame, stored: Mapping[str, Json]) -> None:
        todo, following, base = stored["a"]
        positions = list(range(todo)) if isinstance(todo, int) else todo
        values = {int(k[1:]): v for k, v in stored.items() if k[0] == "m"}
        host.acc = FanState(positions, stored.get("c"), base, following, values, [], stored_items=True)

    def kid_input(self, host: Frame, key: int | str | None) -> Any:
        if not self.kind.derivable():
            return ABSENT
        position = self.kind.position(key)
        return admit_input(self.kind.graph(position), self.kind.given(host, host.acc, position))
