"""From a flow to boxes and arrows, level by level."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plaita.core.flow import Flow
    from plaita.node.basic import Node


@dataclass(frozen=True, slots=True)
class Arrow:
    """Where a node leads, and when: empty for always."""

    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """A node: its id, its type, where it leads, and the flows inside it with the names of their branches."""

    node_id: str
    kind: str
    title: str
    arrows: tuple[Arrow, ...] = ()
    inside: tuple[tuple[str, Picture], ...] = ()
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """One level, in the order of a walk from its start; nodes that nothing leads to come last."""

    title: str
    boxes: tuple[Box, ...]


def picture_of(flow: Flow) -> Picture:
    """The picture of a flow that loads."""
    _ = flow.program
    return _level(flow)


def _level(flow: Flow) -> Picture:
    nodes = {node.id: node for node in flow.resolve_nodes()}
    return Picture(flow.flow_id or "", tuple(_box(nodes[node_id]) for node_id in _walk(flow, nodes)))


def _walk(flow: Flow, nodes: dict[str, Node]) -> list[str]:
    """Depth first from the start, so that what follows stands below; a join comes after all that lead to it."""
    start = flow.start_node
    seen: set[str] = set()
    order: list[str] = []
    work: list[tuple[str, bool]] = [] if start is None else [(start.id, False)]
    while work:
        node_id, done = work.pop()
        if done:
            order.append(node_id)
        elif node_id not in seen:
            seen.add(node_id)
            work.append((node_id, True))
            work += [(a.target, False) for a in arrows_of(nodes[node_id]) if a.target in nodes]
    return [*reversed(order), *(node_id for node_id in nodes if node_id not in seen)]


def _box(node: Node) -> Box:
    inside = tuple((key or "", _level(sub)) for _, sub, key in node.sub_flows() if sub is not None)
    return Box(node.id, node.node_type, node.name or "", arrows_of(node), inside, type(node).is_suspending)


def arrows_of(node: Any) -> tuple[Arrow, ...]:
    """Where a node leads, with what is known of the condition."""
    labels = _labels(node)
    return tuple(
        Arrow(target, labels.get(field.partition("].")[0], labels.get(field, "")))
        for field, target in node.targets()
        if isinstance(target, str)
    )


def _labels(node: Any) -> dict[str, str]:
    match node.node_type:
        case "if":
            return {"next": "yes", "else_next": "no"}
        case "switch":
            return {f"branches[{i}": _branch(branch) for i, branch in enumerate(node.branches)}
        case "case":
            values = {f"cases[{i}": case.name or _short(case.value) for i, case in enumerate(node.cases)}
            return {**values, "default": "else"}
    return {}


def _branch(branch: Any) -> str:
    return str(branch.label or branch.name or ("else" if branch.is_default else ""))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 24 else f"{text[:23]}…"
