"""``loop``, ``map``, ``filter``, ``find``, ``reduce`` and ``while``: a sub-flow again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import AliasChoices, Field, field_validator

from plaita.base.errors import InputError
from plaita.base.json import Json, parse
from plaita.engine import kinds
from plaita.engine.fans import Fan
from plaita.engine.hosts import Rounds
from plaita.node.child import FlowNode
from plaita.node.computed import is_computed

if TYPE_CHECKING:
    from plaita.engine.frames import Frame
    from plaita.engine.hosts import RoundKind
    from plaita.engine.linking import NodeLink
    from plaita.engine.program import Eval


class BaseCollectionNode(FlowNode):
    """A node over ``collection``: a list, JSON text of a list, or null for none."""

    collection: Any = None
    item_type: Any = Field(None, validation_alias=AliasChoices("item_type", "itemType", "typeDefs"))
    input: Any = None

    def items(self, link: NodeLink) -> Callable[[Frame], list[Json]]:
        """Evaluate the collection to a list."""
        return as_list(link.value(self.collection, "collection"))

    def rounds(self, link: NodeLink, kind: RoundKind) -> None:
        """Link as sequential rounds."""
        body = self.body(link)
        if body is None:
            return
        host = Rounds(body, kind, self.items(link))
        link.cn.host = host
        link.cn.step = host.step(link.cn)


def as_list(value: Eval) -> Callable[[Frame], list[Json]]:
    """Null and missing are empty; text that begins with ``[`` is JSON, other text one item; the rest is an error."""

    def items(frame: Frame) -> list[Json]:
        found = value(frame)
        if isinstance(found, list):
            return found
        if found is None:
            return []
        if isinstance(found, str):
            return list(parse(found, "$.collection")) if found.startswith("[") else [found]
        kind = "an object" if isinstance(found, dict) else f"{found!r}"
        raise InputError("$.collection", f"a list is needed, not {kind}")

    return items


class Loop(BaseCollectionNode):
    """Rounds over the items; ``condition`` is checked after each (``$LOOP-ITEM``, ``$LOOP-INDEX``, ``$LOOP-RESULT``).

    Result: the last round's, null without rounds.
    """

    node_type: ClassVar[str] = "loop"
    node_name: ClassVar[str] = "Loop"

    condition: Any = None

    def link(self, link: NodeLink) -> None:
        test = None if self.condition is None else link.condition(self.condition, "condition", loop=True)
        self.rounds(link, kinds.Loop(test))


class Map(BaseCollectionNode):
    """One result an item, in input order; ``concurrent`` opens up to ``maxConcurrent`` items at once."""

    node_type: ClassVar[str] = "map"
    node_name: ClassVar[str] = "Map"

    concurrent: bool = Field(False, validation_alias=AliasChoices("concurrent", "async"))
    max_concurrent: Any = None
    on_branch_error: str = "fail"

    @field_validator("on_branch_error")
    @classmethod
    def _on_branch_error(cls, value: str) -> str:
        return check_branch_error(value)

    def link(self, link: NodeLink) -> None:
        collects = self.on_branch_error == "collect"
        if not self.concurrent and not collects:
            self.rounds(link, kinds.Map())
            return
        body = self.body(link)
        if body is None:
            return
        room = room_of(link, self.max_concurrent) if self.concurrent else 1
        host = Fan(kinds.Items(body, self.items(link)), collects=collects, room=room)
        link.cn.host = host
        link.cn.step = host.step(link.cn)


def check_branch_error(value: str) -> str:
    """``fail`` or ``collect``."""
    if value not in ("fail", "collect"):
        raise ValueError(f"{value!r} is neither 'fail' nor 'collect'")
    return value


def room_of(link: NodeLink, raw: Any) -> int | Eval | None:
    """``maxConcurrent``: a whole number from 1 on, an expression, or nothing for no bound."""
    if raw is None:
        return None
    if is_computed(raw):
        return link.value(raw, "max_concurrent")
    if isinstance(raw, str) and raw.isdigit():
        raw = int(raw)
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 1:
        link.report("bad_number", "max_concurrent", f"maxConcurrent is a whole number from 1 on, not {raw!r}")
        return 1
    return int(raw)


class Filter(BaseCollectionNode):
    """The items whose round gives something truthy."""

    node_type: ClassVar[str] = "filter"
    node_name: ClassVar[str] = "Filter"

    def link(self, link: NodeLink) -> None:
        self.rounds(link, kinds.Filter())


class Find(BaseCollectionNode):
    """The first item whose round gives something truthy, or null."""

    node_type: ClassVar[str] = "find"
    node_name: ClassVar[str] = "Find"

    def link(self, link: NodeLink) -> None:
        self.rounds(link, kinds.Find())


class Reduce(BaseCollectionNode):
    """Folds the items; the body gets ``first`` (so far) and ``second`` (the item), or a pair for an ``array`` input."""

    node_type: ClassVar[str] = "reduce"
    node_name: ClassVar[str] = "Reduce"

    initial: Any = None

    def link(self, link: NodeLink) -> None:
        initial = None if self.initial is None else link.value(self.initial, "initial")
        declared = None if self.child_flow is None else self.child_flow.declared_input()
        pairs = declared is not None and declared.data_type == "array"
        self.rounds(link, kinds.Reduce(initial, pairs))


class While(FlowNode):
    """Rounds while ``condition`` holds, checked before each; ``maxIterations`` (1000) stops them without an error."""

    node_type: ClassVar[str] = "while"
    node_name: ClassVar[str] = "While"
    LEGACY_KEYS: ClassVar[frozenset[str]] = frozenset({"input"})

    condition: Any = None
    max_iterations: Any = 1000

    def link(self, link: NodeLink) -> None:
        body = self.body(link)
        if body is None:
            return
        test = None if self.condition is None else link.condition(self.condition, "condition", loop=True)
        most = self.max_iterations
        if isinstance(most, str) and most.isdigit():
            most = int(most)
        if is_computed(most):
            most = link.value(most, "max_iterations")
        elif isinstance(most, bool) or not isinstance(most, int) or most < 0:
            link.report("bad_number", "max_iterations", f"maxIterations is a whole number from 0 on, not {most!r}")
            most = 0
        host = Rounds(body, kinds.While(test, most, _limit_reached), None)
        link.cn.host = host
        link.cn.step = host.step(link.cn)


def _limit_reached(frame: Frame) -> None:
    frame.run.effects.limits.append(frame.where("" if frame.pc is None else frame.pc.id))
