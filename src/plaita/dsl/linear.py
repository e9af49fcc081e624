"""``linear``: nodes one after the other, with ids and ``next`` made."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, Self

from plaita.dsl import nodes
from plaita.dsl.builder import FlowBuilder
from plaita.dsl.nodes import NodeSpec

_BRANCHING: Final = ("switch", "case", "end")


def _step(factory: Callable[..., NodeSpec], values: int) -> Callable[..., Any]:
    """A method that appends what the factory gives. ``values``: how many come before the id among positional ones."""

    def append(self: LinearBuilder, *args: Any, id: str | None = None, **fields: Any) -> LinearBuilder:
        before, rest = args[:values], args[values:]
        if rest:
            id, rest = rest[0], rest[1:]
        return self.add(factory(id or self.free_id(), *before, *rest, **fields))

    append.__doc__ = factory.__doc__
    append.__name__ = factory.__name__
    return append


class LinearBuilder(FlowBuilder):
    """A builder whose nodes follow each other: one without ``next`` leads to the node added after it.

    The methods take what the factories take, with ``id`` optional: ``linear("x").assignment("$INPUT.a").end()``. A
    start is put in front when there is none.
    """

    start = _step(nodes.start, 0)
    end = _step(nodes.end, 0)
    assignment = _step(nodes.assignment, 1)
    if_ = _step(nodes.if_, 1)
    switch = _step(nodes.switch, 1)
    case = _step(nodes.case, 3)
    loop = _step(nodes.loop, 2)
    map = _step(nodes.map, 2)
    filter = _step(nodes.filter, 2)
    find = _step(nodes.find, 2)
    reduce = _step(nodes.reduce, 2)
    while_ = _step(nodes.while_, 2)
    child = _step(nodes.child, 2)
    reference = _step(nodes.reference, 2)
    parallel = _step(nodes.parallel, 1)
    code = _step(nodes.code, 2)
    http = _step(nodes.http, 2)
    event = _step(nodes.event, 1)
    delay = _step(nodes.delay, 1)
    approval = _step(nodes.approval, 2)
    mock = _step(nodes.mock, 1)

    def free_id(self) -> str:
        """The first of ``_n1``, ``_n2``, … that no node has."""
        taken = {node.get("id") for node in self._nodes}
        return next(found for n in range(1, len(taken) + 2) if (found := f"_n{n}") not in taken)

    def add(self, node: NodeSpec) -> Self:
        """Append a node; without ``id`` it gets one."""
        return super().add({"id": self.free_id(), **node})

    def to_dict(self) -> dict[str, Any]:
        """The document, its nodes chained."""
        found = super().to_dict()
        chain = found["nodes"]
        if chain and not any(node.get("type") == "start" for node in chain):
            taken = {node.get("id") for node in chain}
            chain.insert(0, nodes.start("start" if "start" not in taken else "start_of_flow"))
        for node, following in pairwise(chain):
            if node.get("type") not in _BRANCHING and node.get("next") is None:
                node["next"] = following["id"]
        return found


def linear(flow_id: str | None = None, **options: Any) -> LinearBuilder:
    """A linear builder; the options are those of ``build``."""
    return LinearBuilder(flow_id, **options)
