"""Choices by a node that cannot be the one before."""

from __future__ import annotations

from collections.abc import Iterator

from plaita.base.issues import Issue
from plaita.base.spelling import suggest
from plaita.core.validate.view import FlowView


def upstreams_lead_here(view: FlowView) -> Iterator[Issue]:
    """An ``upstreamOutput`` for a node that does not lead here is a warning: it is never chosen."""
    for i, node in enumerate(view.nodes):
        entries = getattr(node, "upstream_output", None) or ()
        if len(entries) < 2:
            continue
        sources = [source for source, targets in view.targets.items() if node.id in targets]
        for j, entry in enumerate(entries):
            upstream = entry.get("upstream")
            if isinstance(upstream, str) and upstream not in sources:
                text = f"node {upstream!r} does not lead to {node.id!r}, so this value is never chosen"
                hint = suggest(upstream, sources) or f"nodes that do: {', '.join(sources[:8])}"
                where = view.path_of(i, f"upstreamOutput[{j}].upstream")
                yield Issue("warning", "unused_upstream", where, text, hint, node.id)
