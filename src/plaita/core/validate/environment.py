"""Environment variables that nobody exposed."""

from __future__ import annotations

from collections.abc import Iterator

from plaita.base.issues import Issue
from plaita.core.validate.view import FlowView


def environment_is_exposed(view: FlowView) -> Iterator[Issue]:
    """``$ENV`` in a flow that exposes nothing, nor does one around it, is a warning: it is always null."""
    if view.exposes:
        return
    for i, node in enumerate(view.nodes):
        for field in view.env_reads.get(node.id, ()):
            text = f"node {node.id!r} reads $ENV, and the flow exposes no variable: it is null"
            yield Issue(
                "warning", "env_not_exposed", view.path_of(i, field), text, "list its name in exposeEnv", node.id
            )
