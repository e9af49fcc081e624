"""Cycles nobody leaves."""

from __future__ import annotations

from collections.abc import Iterator

from plaita.base.issues import Issue
from plaita.core.validate.view import FlowView
from plaita.node.basic import Node


def cycles_can_be_left(view: FlowView) -> Iterator[Issue]:
    """Nodes that only compute and lead nowhere but to each other turn until the time is up: a warning."""
    if view.start is None or view.timed:
        return
    stuck = view.reached - _may_stop(view)
    for i, node in enumerate(view.nodes):
        if node.id in stuck and _comes_back(view, node.id):
            text = f"from {node.id!r} the flow goes round for ever: no end, wait or call can be reached"
            hint = "lead one of its nodes out of the cycle, or give the flow a timeout"
            yield Issue("warning", "endless_cycle", view.path_of(i), text, hint, node.id)
            return


def _may_stop(view: FlowView) -> frozenset[str]:
    """Ids from which something other than computing can be reached."""
    sources: dict[str, list[str]] = {}
    for node_id, targets in view.targets.items():
        for target in targets:
            sources.setdefault(target, []).append(node_id)
    work = [node.id for node in view.nodes if not view.targets.get(node.id) or not _only_computes(node)]
    found: set[str] = set()
    while work:
        node_id = work.pop()
        if node_id not in found:
            found.add(node_id)
            work += sources.get(node_id, ())
    return frozenset(found)


def _only_computes(node: Node) -> bool:
    if node.node_type == "end" or node.is_suspending or not node.builtin:
        return False
    inside = (inner for _, sub, _ in node.sub_flows() if sub is not None for inner in sub.nodes)
    return all(inner.node_type == "end" or _only_computes(inner) for inner in inside)


def _comes_back(view: FlowView, node_id: str) -> bool:
    seen: set[str] = set()
    work = list(view.targets.get(node_id, ()))
    while work:
        target = work.pop()
        if target == node_id:
            return True
        if target not in seen:
            seen.add(target)
            work += view.targets.get(target, ())
    return False
