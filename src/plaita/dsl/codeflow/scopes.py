"""What a name means: the variables of one level, those of the levels around it, and the roots."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from plaita.dsl.codeflow.naming import Ids, is_plain

ROOTS: Final = ("INPUT", "NODE", "GLOBAL", "PARENT", "ENV")
LOOP_NAMES: Final = {"item": "LOOP-ITEM", "index": "LOOP-INDEX", "rounds": "LOOP-INDEX", "result": "LOOP-RESULT"}
"""What conditions of ``while`` and ``LOOP`` call the roots of a round."""


@dataclass(eq=False)
class Level:
    """One level of a flow while it is written.

    ``variables``: names that are assigned on every way to the present statement, with the ids of their nodes.
    ``assigned``: every name assigned so far on any way, with its line. ``given``: names of the loop around the level,
    with their paths without ``$``. ``constants``: literals at the top of the module.
    """

    ids: Ids
    parent: Level | None = None
    variables: dict[str, str] = field(default_factory=dict)
    assigned: dict[str, int] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    node_ids: set[str] = field(default_factory=set)

    def add(self, node: dict[str, Any]) -> None:
        """The next node of the document."""
        self.nodes.append(node)
        self.node_ids.add(node["id"])

    def path_of(self, name: str) -> str | None:
        """``$NODE.x``, ``$PARENT.NODE.x`` or ``$INPUT.item``; ``None`` for a name nobody knows."""
        level: Level | None = self
        prefix = "$"
        while level is not None:
            if name in level.variables:
                return prefix + node_path(level.variables[name])
            if name in level.given:
                return prefix + level.given[name]
            level, prefix = level.parent, f"{prefix}PARENT."
        return None

    def is_known_outside(self, name: str) -> bool:
        """Does a level around this one have the name?"""
        return self.parent is not None and self.parent.path_of(name) is not None

    def known(self) -> list[str]:
        """Every name that has a meaning here."""
        level: Level | None = self
        found: list[str] = [*ROOTS, *self.constants]
        while level is not None:
            found += [*level.variables, *level.given]
            level = level.parent
        return found


def node_path(node_id: str) -> str:
    """``NODE.x``, or ``NODE["two words"]`` for an id that cannot follow a dot."""
    return f"NODE.{node_id}" if is_plain(node_id) else f"NODE[{json.dumps(node_id, ensure_ascii=False)}]"
