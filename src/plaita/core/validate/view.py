"""What a rule looks at: one flow level, parsed and linked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from plaita.node.basic import Node


@dataclass(frozen=True)
class FlowView:
    """One flow level. ``path`` is its JSON path; ``raws`` the documents of ``nodes`` (empty for nodes made in Python).

    ``targets`` are the node ids a node leads to; ``reads`` the results of this level a node reads, with the field;
    ``timed``: the flow, or one around it, has a timeout.
    """

    path: str
    raw: Mapping[str, Any]
    nodes: Sequence[Node]
    raws: Sequence[Mapping[str, Any]]
    targets: Mapping[str, Sequence[str]]
    reads: Mapping[str, Sequence[tuple[str, str]]]
    known_keys: frozenset[str]
    is_sub_flow: bool
    timed: bool

    @cached_property
    def start(self) -> str | None:
        """Id of the entry."""
        return next((n.id for n in self.nodes if n.node_type == "start"), None)

    @cached_property
    def reached(self) -> frozenset[str]:
        """Ids that can be reached from the entry."""
        seen: set[str] = set()
        work = [self.start] if self.start is not None else []
        while work:
            node_id = work.pop()
            if node_id not in seen:
                seen.add(node_id)
                work += [t for t in self.targets.get(node_id, ()) if t not in seen]
        return frozenset(seen)

    def path_of(self, index: int, field: str = "") -> str:
        """JSON path of a node or one of its fields."""
        return f"{self.path}.nodes[{index}]{'.' + field if field else ''}"
