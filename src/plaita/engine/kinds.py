"""The kinds of rounds and fans: what loop, while, map, filter, find, reduce and parallel differ in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from plaita.base.json import Json
from plaita.engine.detaching import detach
from plaita.engine.expression.scope import ABSENT
from plaita.engine.failure import NODE_CODE, Failure, FailureRaised
from plaita.engine.fans import FanState
from plaita.engine.frames import Frame, escape
from plaita.engine.hosts import RoundState
from plaita.engine.program import Eval, Graph
from plaita.engine.values import truthy

Test = Callable[[Any], bool]


def _item(state: RoundState) -> Json:
    return {"item": (state.items or ())[state.i], "index": state.i}


def _left(state: RoundState) -> bool:
    return state.i < len(state.items or ())


def _look(frame: Frame, item: Json, index: int, result: Json) -> None:
    frame.extra = {**(frame.extra or {}), "LOOP-ITEM": item, "LOOP-INDEX": index, "LOOP-RESULT": result}


def _unlook(frame: Frame) -> None:
    kept = {k: v for k, v in (frame.extra or {}).items() if not k.startswith("LOOP-")}
    frame.extra = kept or None


@dataclass(frozen=True, slots=True)
class Loop:
    """Every item; the condition is checked after each round. Result: the last round's value, or null."""

    condition: Test | None
    listing: ClassVar[bool] = False

    def begin(self, frame: Frame, state: RoundState) -> None:
        return None

    def more(self, frame: Frame, state: RoundState) -> bool:
        return _left(state)

    def given(self, state: RoundState) -> Json:
        return _item(state)

    def take(self, frame: Frame, state: RoundState, value: Json) -> bool:
        state.value = value
        if self.condition is None:
            return True
        _look(frame, (state.items or ())[state.i], state.i, value)
        try:
            return self.condition(frame)
        finally:
            _unlook(frame)

    def result(self, state: RoundState) -> Json:
        return state.value


@dataclass(frozen=True, slots=True)
class While:
    """As long as the condition holds, checked before each round; exactly one round without a condition."""

    condition: Test | None
    rounds_max: int | Eval
    counter: Callable[[Frame], None]
    """Told when the limit stops the rounds."""
    listing: ClassVar[bool] = False

    def begin(self, frame: Frame, state: RoundState) -> None:
        return None

    def more(self, frame: Frame, state: RoundState) -> bool:
        if self.condition is None:
            return state.i == 0
        _look(frame, state.value, state.i, state.value)
        try:
            if not self.condition(frame):
                return False
        finally:
            _unlook(frame)
        limit = self.rounds_max if isinstance(self.rounds_max, int) else self.rounds_max(frame)
        if isinstance(limit, str) and limit.isdigit():
            limit = int(limit)
        if isinstance(limit, bool) or not isinstance(limit, int):
            raise FailureRaised(Failure("input_error", NODE_CODE, f"maxIterations is {limit!r}, not a whole number"))
        if state.i < limit:
            return True
        self.counter(frame)
        return False

    def given(self, state: RoundState) -> Json:
        return {"item": state.value, "index": state.i}

    def take(self, frame: Frame, state: RoundState, value: Json) -> bool:
        state.value = value
        return True

    def result(self, state: RoundState) -> Json:
        return state.value


class Map:
    """One value an item."""

    listing: ClassVar[bool] = True

    def begin(self, frame: Frame, state: RoundState) -> None:
        return None

    def more(self, frame: Frame, state: RoundState) -> bool:
        return _left(state)

    def given(self, state: RoundState) -> Json:
        return _item(state)

    def take(self, frame: Frame, state: RoundState, value: Json) -> bool:
        if state.out is not None:
            state.out.append(value)
        return True

    def result(self, state: RoundState) -> Json:
        return state.out


class Filter:
    """The items whose round gives something truthy."""

    listing: ClassVar[bool] = True

    def begin(self, frame: Frame, state: RoundState) -> None:
        return None

    def more(self, frame: Frame, state: RoundState) -> bool:
        return _left(state)

    def given(self, state: RoundState) -> Json:
        return _item(state)

    def take(self, frame: Frame, state: RoundState, value: Json) -> bool:
        if state.out is not None:
            state.out.append(truthy(value))
        return True

    def result(self, state: RoundState) -> Json:
        return [item for item, kept in zip(state.items or (), state.out or (), strict=True) if kept]


class Find:
    """The first item whose round gives something truthy, or null."""

    listing: ClassVar[bool] = False

    def begin(self, frame: Frame, state: RoundState) -> None:
        return None

    def more(self, frame: Frame, state: RoundState) -> bool:
        return _left(state)

    def given(self, state: RoundState) -> Json:
        return _item(state)

    def take(self, frame: Frame, state: RoundState, value: Json) -> bool:
        if truthy(value):
            state.value = (state.items or ())[state.i]
            return False
        return True

    def result(self, state: RoundState) -> Json:
        return state.value


@dataclass(frozen=True, slots=True)
class Reduce:
    """Fold the items. Without ``initial`` (or with null) the first item is the start; ``pairs``: input is a list."""

    initial: Eval | None
    pairs: bool
    listing: ClassVar[bool] = False

    def begin(self, frame: Frame, state: RoundState) -> None:
        start = None if self.initial is None else self.initial(frame)
        items = state.items or []
        if start is None:
            if not items:
                text = "reduce of an empty collection needs 'initial'"
                raise FailureRaised(Failure("node_error", NODE_CODE, text))
            state.value, state.items = items[0], items[1:]
        else:
            state.value = start

    def more(self, frame: Frame, state: RoundState) -> bool:
        return _left(state)

    def given(self, state: RoundState) -> Json:
        item = (state.items or ())[state.i]
        return [state.value, item] if self.pairs else {"first": state.value, "second": item}

    def take(self, frame: Frame, state: RoundState, value: Json) -> bool:
        state.value = value
        return True

    def result(self, state: RoundState) -> Json:
        return state.value


@dataclass(frozen=True, slots=True)
class Items:
    """A concurrent map."""

    sub: Graph
    items: Callable[[Frame], list[Json]]

    def begin(self, frame: Frame, base: str) -> tuple[list[int], list[Json] | None]:
        items = self.items(frame)
        return list(range(len(items))), items

    def graph(self, position: int) -> Graph:
        return self.sub

    def key(self, position: int) -> int | str:
        return position

    def position(self, key: int | str | None) -> int:
        return int(key or 0)

    def given(self, frame: Frame, state: FanState, position: int) -> Any:
        return {"item": (state.items or ())[position], "index": position}

    def derivable(self) -> bool:
        return True

    def result(self, state: FanState) -> Json:
        return [state.out[i] for i in state.todo]


@dataclass(frozen=True, slots=True)
class BranchPlan:
    """One branch of a ``parallel``; ``joined`` false makes it a run of its own."""

    name: str
    graph: Graph
    value: Eval | None
    test: Test | None
    joined: bool


@dataclass(frozen=True, slots=True)
class Branches:
    """A ``parallel``. A branch that nobody joins is detached with the scope as it is when the node begins."""

    branches: Sequence[BranchPlan]

    def begin(self, frame: Frame, base: str) -> tuple[list[int], list[Json] | None]:
        chosen = [i for i, b in enumerate(self.branches) if b.test is None or b.test(frame)]
        alone = [self.branches[i] for i in chosen if not self.branches[i].joined]
        detached = [detach(frame, f"{base}:{escape(b.name)}", b.graph, self._given(frame, b)) for b in alone]
        frame.run.effects.detached += detached
        return [i for i in chosen if self.branches[i].joined], None

    def _given(self, frame: Frame, branch: BranchPlan) -> Any:
        return ABSENT if branch.value is None else branch.value(frame)

    def graph(self, position: int) -> Graph:
        return self.branches[position].graph

    def key(self, position: int) -> int | str:
        return self.branches[position].name

    def position(self, key: int | str | None) -> int:
        return next(i for i, b in enumerate(self.branches) if b.name == key)

    def given(self, frame: Frame, state: FanState, position: int) -> Any:
        return self._given(frame, self.branches[position])

    def derivable(self) -> bool:
        return False

    def result(self, state: FanState) -> Json:
        return {self.branches[i].name: state.out[i] for i in state.todo}
