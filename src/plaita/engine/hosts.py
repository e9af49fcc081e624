"""Nodes with frames below them: what a host opens, what it makes of its kids' values, what of it is stored.

``Inline`` runs one sub-flow once; ``Rounds`` runs one sub-flow again and again, one round at a time, in one reused
frame. ``plaita.engine.fans`` has the host of several at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from plaita.base.json import Json
from plaita.engine import failing
from plaita.engine.expression.scope import ABSENT
from plaita.engine.failure import Failure
from plaita.engine.frames import Frame, escape
from plaita.engine.program import CNode, Eval, Graph, Step
from plaita.engine.steps import deadline_of
from plaita.engine.types import conform

Store = dict[str, Json]
"""Host state for a delta: key suffix to value; see ``Host.save``."""


class Host(Protocol):
    """The hosting half of a node."""

    @property
    def collects(self) -> bool:
        """Does a kid's failure become a value?"""

    def graph_of(self, key: int | str | None) -> Graph:
        """The graph of the kid under that key."""

    def child_done(self, kid: Frame, value: Json) -> CNode | None:
        """A kid reached its end; the next node of the same kid frame, or ``None``."""

    def rank(self, key: int | str | None) -> int:
        """The place of a kid among its siblings."""

    def collect(self, host: Frame, key: int | str | None, failure: Failure) -> None:
        """Take a kid's failure as its value, where ``collects`` says so."""

    def pump(self, host: Frame) -> Frame | None:
        """Open one more kid if there is one and room for it."""

    def save(self, host: Frame) -> Store:
        """What changed since the last save. Keys: ``a`` state, ``c`` collection, ``m<key>`` one kid's value."""

    def load(self, host: Frame, stored: Mapping[str, Json]) -> None:
        """Rebuild the host state from everything saved under it."""

    def kid_input(self, host: Frame, key: int | str | None) -> Any:
        """The input of an open kid when it can be derived; ``ABSENT`` when it is stored with the kid."""


def admit_input(graph: Graph, value: Any) -> Any:
    """Defaults and validation of a sub-flow's input; an input that was not given stays absent."""
    if graph.input_type is None or value is ABSENT:
        return value
    return conform(graph.input_type, value, "$.input")


def base_of(frame: Frame, cn: CNode) -> str:
    """Address of the kids of one opening of a host."""
    opening = frame.visit(cn)
    return f"{frame.addr}/{escape(cn.id)}" if opening == 1 else f"{frame.addr}/{escape(cn.id)}~{opening}"


def enter(kid: Frame) -> None:
    """A sub-flow begins: its own timeout with it."""
    trace = kid.run.conditions.trace
    if trace is not None:
        trace("begin", kid, None, kid.input)
    if kid.graph.timeout is not None:
        kid.limit = kid.run.now_ms + kid.graph.timeout
        kid.run.arm(kid, kid.limit)


def hand_over(frame: Frame, cn: CNode, value: Json) -> None:
    """The host node is done: its frame goes on behind it."""
    trace = frame.run.conditions.trace
    if trace is not None:
        trace("end", frame, cn, value)
    frame.leave(cn, value)
    frame.run.cont = frame


class Inline:
    """The host of ``child``."""

    collects = False

    def __init__(self, sub: Graph, value: Eval | None) -> None:
        self.sub, self.value = sub, value

    def step(self, cn: CNode) -> Step:
        sub, value = self.sub, self.value

        def step(frame: Frame) -> CNode | None:
            given = ABSENT if value is None else admit_input(sub, value(frame))
            deadline_of(frame, cn)
            kid = frame.run.open_frame(frame, cn, sub, None, base_of(frame, cn))
            kid.begin(given)
            enter(kid)
            frame.run.cont = kid
            return None

        return step

    def graph_of(self, key: int | str | None) -> Graph:
        return self.sub

    def rank(self, key: int | str | None) -> int:
        return 0

    def child_done(self, kid: Frame, value: Json) -> CNode | None:
        host, cn = kid.host, kid.hnode
        failing.close(kid.run, kid)
        if host is not None and cn is not None:
            hand_over(host, cn, value)
        return None

    def collect(self, host: Frame, key: int | str | None, failure: Failure) -> None:
        raise AssertionError("the failure of a kid fails this host")

    def pump(self, host: Frame) -> Frame | None:
        return None

    def save(self, host: Frame) -> Store:
        return {}

    def load(self, host: Frame, stored: Mapping[str, Json]) -> None:
        return None

    def kid_input(self, host: Frame, key: int | str | None) -> Any:
        return ABSENT


@dataclass(slots=True)
class RoundState:
    """``i`` is the open round, ``value`` what the rounds so far made, ``out`` one entry a finished round."""

    items: list[Json] | None
    base: str
    i: int = 0
    value: Json = None
    out: list[Json] | None = None
    saved: int = 0
    stored_items: bool = False


class RoundKind(Protocol):
    """What distinguishes loop, while, map, filter, find and reduce."""

    @property
    def listing(self) -> bool:
        """Does every finished round leave an entry in ``out``?"""

    def begin(self, frame: Frame, state: RoundState) -> None:
        """Prepare the state before the first round."""

    def more(self, frame: Frame, state: RoundState) -> bool:
        """Is there a round ``state.i``?"""

    def given(self, state: RoundState) -> Json:
        """The input of round ``state.i``."""

    def take(self, frame: Frame, state: RoundState, value: Json) -> bool:
        """Use the value of round ``state.i``; false ends the rounds."""

    def result(self, state: RoundState) -> Json:
        """The node's result."""


class Rounds:
    """The host of collection nodes and ``while``: one round at a time."""

    collects = False

    def __init__(self, sub: Graph, kind: RoundKind, items: Callable[[Frame], list[Json]] | None) -> None:
        self.sub, self.kind, self.items = sub, kind, items

    def step(self, cn: CNode) -> Step:
        kind, items, sub = self.kind, self.items, self.sub

        def step(frame: Frame) -> CNode | None:
            state = RoundState(None if items is None else items(frame), "", out=[] if kind.listing else None)
            kind.begin(frame, state)
            deadline_of(frame, cn)
            if not kind.more(frame, state):
                frame.pc = cn
                hand_over(frame, cn, kind.result(state))
                return None
            given = admit_input(sub, kind.given(state))
            state.base = base_of(frame, cn)
            kid = frame.run.open_frame(frame, cn, sub, state.i, state.base)
            frame.acc = state
            kid.begin(given)
            enter(kid)
            frame.run.cont = kid
            return None

        return step

    def child_done(self, kid: Frame, value: Json) -> CNode | None:
        run, host, cn = kid.run, kid.host, kid.hnode
        if host is None or cn is None:
            return None
        state: RoundState = host.acc
        run.touched[host] = None
        try:
            go_on = self.kind.take(host, state, value)
            if go_on:
                state.i += 1
                go_on = self.kind.more(host, state)
                given = admit_input(self.sub, self.kind.given(state)) if go_on else None
        except Exception as e:  # noqa: BLE001 - conditions and types are closures over user data: the host's failure
            failing.fail(run, host, failing.to_failure(e, cn))
            return None
        if not go_on:
            result = self.kind.result(state)
            failing.close(run, kid)
            hand_over(host, cn, result)
            return None
        run.erase(kid)
        kid.key = state.i
        del host.kids[next(iter(host.kids))]
        host.kids[state.i] = kid
        kid.begin(given)
        enter(kid)
        run.fuel -= 1
        if run.fuel <= 0 and kid.pc is not None:
            run.pause(kid, kid.pc)
            return None
        return kid.pc

    def graph_of(self, key: int | str | None) -> Graph:
        return self.sub

    def rank(self, key: int | str | None) -> int:
        return int(key or 0)

    def collect(self, host: Frame, key: int | str | None, failure: Failure) -> None:
        raise AssertionError("the failure of a kid fails this host")

    def pump(self, host: Frame) -> Frame | None:
        return None

    def save(self, host: Frame) -> Store:
        state: RoundState = host.acc
        out: Store = {"a": [state.i, state.value, state.base]}
        if state.items is not None and not state.stored_items:
            out["c"] = state.items
            state.stored_items = True
        if state.out is not None:
            for i in range(state.saved, len(state.out)):
                out[f"m{i}"] = state.out[i]
            state.saved = len(state.out)
        return out

    def load(self, host: Frame, stored: Mapping[str, Json]) -> None:
        i, value, base = stored["a"]
        out = [stored[f"m{k}"] for k in range(i)] if self.kind.listing else None
        host.acc = RoundState(stored.get("c"), base, i, value, out, saved=i, stored_items=True)

    def kid_input(self, host: Frame, key: int | str | None) -> Any:
        return admit_input(self.sub, self.kind.given(host.acc))
