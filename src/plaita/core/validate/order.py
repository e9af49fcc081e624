"""Results that may not exist when they are read."""

from __future__ import annotations

from collections.abc import Iterator

from plaita.base.issues import Issue
from plaita.core.validate.view import FlowView


def results_exist_when_read(view: FlowView) -> Iterator[Issue]:
    """``$NODE.x`` where some path from the start passes x by is a warning: it reads null there."""
    if view.start is None or not view.reads:
        return
    before = _surely_before(view)
    index = {node.id: i for i, node in enumerate(view.nodes)}
    for node_id, reads in view.reads.items():
        sure = before.get(node_id)
        if sure is None:
            continue
        for other, field in reads:
            if other in index and other != node_id and not sure >> index[other] & 1:
                text = f"node {other!r} may not have run when {node_id!r} reads it; $NODE.{other} is null then"
                yield Issue("warning", "may_not_have_run", view.path_of(index[node_id], field), text, node_id=node_id)


def _surely_before(view: FlowView) -> dict[str, int]:
    """For every reachable node the set (as bits) of nodes on all paths to it: dominators, to a fixed point."""
    bit = {node.id: 1 << i for i, node in enumerate(view.nodes)}
    order = _reverse_postorder(view)
    sources: dict[str, list[str]] = {n: [] for n in order}
    for node_id in order:
        for target in view.targets.get(node_id, ()):
            if target in sources:
                sources[target].append(node_id)
    sure: dict[str, int] = {}
    changed = True
    while changed:
        changed = False
        for node_id in order:
            known = [sure[s] | bit[s] for s in sources[node_id] if s in sure]
            found = 0
            if known and node_id != view.start:
                found = known[0]
                for other in known[1:]:
                    found &= other
            if sure.get(node_id) != found:
                sure[node_id], changed = found, True
    return sure


def _reverse_postorder(view: FlowView) -> list[str]:
    order: list[str] = []
    seen: set[str] = set()
    work: list[tuple[str, bool]] = [(view.start or "", False)]
    while work:
        node_id, done = work.pop()
        if done:
            order.append(node_id)
        elif node_id not in seen:
            seen.add(node_id)
            work.append((node_id, True))
            work += [(t, False) for t in reversed(view.targets.get(node_id, ())) if t not in seen]
    return order[::-1]
