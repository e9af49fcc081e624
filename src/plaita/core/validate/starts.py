"""A flow begins at its first start node."""

from __future__ import annotations

from collections.abc import Iterator

from plaita.base.issues import Issue
from plaita.core.validate.view import FlowView


def there_is_one_start(view: FlowView) -> Iterator[Issue]:
    """No start is an error; further ones are never entered."""
    starts = [i for i, n in enumerate(view.nodes) if n.node_type == "start"]
    if not starts:
        hint = 'add {"type": "start", "id": "start", "next": …}'
        yield Issue("error", "no_start", f"{view.path}.nodes", "the flow has no start node", hint)
    for i in starts[1:]:
        text = f"start node {view.nodes[i].id!r} is ignored: the flow begins at {view.nodes[starts[0]].id!r}"
        yield Issue("warning", "second_start", view.path_of(i), text, node_id=view.nodes[i].id)
