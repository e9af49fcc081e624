"""A sub-flow must be able to end: its host waits for the value."""

from __future__ import annotations

from collections.abc import Iterator

from plaita.base.issues import Issue
from plaita.core.validate.view import FlowView


def every_sub_flow_can_end(view: FlowView) -> Iterator[Issue]:
    """A sub-flow without an end node on any path from its start is an error."""
    if not view.is_sub_flow or view.start is None:
        return
    if not any(n.node_type == "end" and n.id in view.reached for n in view.nodes):
        text = "no end node can be reached from the start of this sub-flow"
        yield Issue("error", "no_end", f"{view.path}.nodes", text, 'add {"type": "end", "id": …, "output": …}')
