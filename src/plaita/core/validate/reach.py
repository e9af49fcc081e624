"""Nodes nobody leads to."""

from __future__ import annotations

from collections.abc import Iterator

from plaita.base.issues import Issue
from plaita.core.validate.view import FlowView


def every_node_is_reachable(view: FlowView) -> Iterator[Issue]:
    """An unreachable node is a warning: it is dead weight, or a forgotten ``next``."""
    if view.start is None:
        return
    for i, node in enumerate(view.nodes):
        if node.id not in view.reached and node.node_type != "start":
            text = f"node {node.id!r} cannot be reached from {view.start!r}"
            yield Issue("warning", "unreachable", view.path_of(i), text, node_id=node.id)
