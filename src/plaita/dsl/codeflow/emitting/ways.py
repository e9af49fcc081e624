"""The shape of one level: where its nodes lead, what is reached from where, where ways meet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plaita.dsl.codeflow.errors import EmitError

BRANCHING = ("if", "switch", "case")


def targets(node: dict[str, Any]) -> list[str]:
    """Ids of the nodes that may follow, in the order in which they are written."""
    match node.get("type"):
        case "if":
            return [node.get("next", "true"), node.get("else_next", node.get("elseNext", "false"))]
        case "switch":
            return [target_of(branch) for branch in node.get("branches") or ()]
        case "case":
            return [*(entry["id"] for entry in node.get("cases") or ()), node.get("default", "default")]
        case "end":
            return []
    return [] if node.get("next") is None else [node["next"]]


def target_of(branch: dict[str, Any]) -> Any:
    """Where a branch of a ``switch`` leads."""
    return branch["next"] if branch.get("next") is not None else branch.get("name")


class Ways:
    """A level as a graph. Raises ``EmitError`` for what structured code cannot say: cycles, ends that are no ends."""

    def __init__(self, nodes: list[dict[str, Any]]) -> None:
        self.nodes = {str(node.get("id")): node for node in nodes}
        if len(self.nodes) != len(nodes):
            raise EmitError("two nodes have one id", "correct the flow first")
        starts = [node for node in nodes if node.get("type") == "start"]
        if not starts:
            raise EmitError("the flow has no start", "correct the flow first")
        self.start = starts[0]
        order = list(self._postorder(str(self.start["id"])))
        self.rank = {node_id: len(order) - i for i, node_id in enumerate(order)}
        self._reach: dict[str, int] = {}
        for node_id in order:
            bits = 1 << self.rank[node_id]
            for target in targets(self.nodes[node_id]):
                bits |= self._reach[target]
            self._reach[node_id] = bits
        self._by_rank = {rank: node_id for node_id, rank in self.rank.items()}

    def _postorder(self, start: str) -> Iterator[str]:
        done: set[str] = set()
        path: dict[str, Iterator[str]] = {start: iter(self._checked(start))}
        while path:
            node_id, rest = next(reversed(path.items()))
            target = next(rest, None)
            if target is None:
                del path[node_id]
                done.add(node_id)
                yield node_id
            elif target in path:
                hint = "a loop in Python is WHILE, LOOP or MAP: a child flow, again and again"
                raise EmitError(f"node {node_id!r} leads back to {target!r}", hint)
            elif target not in done:
                path[target] = iter(self._checked(target))

    def _checked(self, node_id: str) -> list[str]:
        node = self.nodes[node_id]
        found = targets(node)
        if not found and node.get("type") != "end":
            raise EmitError(f"node {node_id!r} leads nowhere", "correct the flow first")
        for target in found:
            if target not in self.nodes:
                raise EmitError(f"node {node_id!r} leads to {target!r}, which is no node", "correct the flow first")
        return found

    def reaches(self, node_id: str, target: str) -> bool:
        """Does a way lead from one node to the other, or are they one?"""
        return bool(self._reach[node_id] >> self.rank[target] & 1)

    def meeting(self, arms: list[str]) -> str | None:
        """The first node that more than one of the arms leads to."""
        once = twice = 0
        for arm in arms:
            twice |= once & self._reach[arm]
            once |= self._reach[arm]
        if not twice:
            return None
        lowest = (twice & -twice).bit_length() - 1
        return self._by_rank[lowest]
