"""What a rule looks at: one flow level, parsed and linked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from plaita.engine.types import Property
from plaita.node.basic import Node


@dataclass(frozen=True)
class FlowView:
    """One flow level. ``path`` is its JSON path; ``raws`` the documents of ``nodes`` (empty for nodes made in Python).

    ``targets`` are the node ids a node leads to; ``reads`` the results of this level a node reads, with the field;
    ``env_reads`` the fields of a node that read ``$ENV``; ``hosts`` type and id of the nodes around this level,
    outermost first, and ``place`` its documented path. ``timed``: the flow, or one around it, has a timeout;
    ``exposes``: it may read variables of the environment.
    """

    path: str
    raw: Mapping[str, Any]
    nodes: Sequence[Node]
    raws: Sequence[Mapping[str, Any]]
    targets: Mapping[str, Sequence[str]]
    reads: Mapping[str, Sequence[tuple[str, str]]]
    known_keys: frozenset[str]
    env_reads: Mapping[str, Sequence[str]]
    hosts: tuple[tuple[str, str], ...]
    place: str
    output_type: Property | None
    timed: bool
    exposes: bool

    @property
    def is_sub_flow(self) -> bool:
        """Is there a node around this level?"""
        return bool(self.hosts)

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
