"""Switches that may match nothing."""

from __future__ import annotations

from collections.abc import Iterator

from plaita.base.issues import Issue
from plaita.core.validate.view import FlowView
from plaita.node.decide import Switch


def switches_have_a_default(view: FlowView) -> Iterator[Issue]:
    """A switch without a default branch fails when nothing matches: a warning."""
    for i, node in enumerate(view.nodes):
        if isinstance(node, Switch) and not any(b.is_default for b in node.branches):
            text = f"switch {node.id!r} has no default branch: the flow fails when none matches"
            yield Issue("warning", "no_default", view.path_of(i), text, "add a branch with isDefault: true", node.id)
