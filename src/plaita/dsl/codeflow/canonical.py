"""The stored form of a compiled flow: one spelling, no nulls, bytes that depend on the source alone."""

from __future__ import annotations

import json
from typing import Any, Final

SOURCE_FORMAT: Final = "plaita@flow"
_MEANS_NULL: Final = frozenset({"input"})
"""Fields in which null is something else than nothing."""


def to_canonical(ir: dict[str, Any]) -> dict[str, Any]:
    """A copy without null keys, with ``childFlow`` for every child flow."""
    flow = {key: value for key, value in ir.items() if value is not None}
    if isinstance(flow.get("nodes"), list):
        flow["nodes"] = [canonical_node(node) for node in flow["nodes"]]
    return flow


def canonical_node(node: dict[str, Any]) -> dict[str, Any]:
    """A copy of one node in its canonical form, its child flows included."""
    found: dict[str, Any] = {}
    for key, value in node.items():
        if value is None and key not in _MEANS_NULL:
            continue
        if key in ("childFlow", "child_flow"):
            found["childFlow"] = to_canonical(value) if isinstance(value, dict) else value
        elif key == "branches" and isinstance(value, list):
            found[key] = [_branch(branch) for branch in value]
        else:
            found[key] = value
    return found


def _branch(branch: Any) -> Any:
    if not isinstance(branch, dict):
        return branch
    return {k: to_canonical(v) if k == "flow" and isinstance(v, dict) else v for k, v in branch.items()}


def serialize_canonical(doc: dict[str, Any]) -> str:
    """The text of a document: two spaces, the order of the compiler, a line break at the end."""
    return json.dumps(doc, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def embed_source(doc: dict[str, Any], source: str) -> dict[str, Any]:
    """A copy that carries its Python source in ``metadata``."""
    metadata = {**(doc.get("metadata") or {}), "source": source, "source_format": SOURCE_FORMAT}
    return {**doc, "metadata": metadata}


def count_nodes(doc: dict[str, Any]) -> int:
    """How many nodes a document has, those of its child flows included."""
    waiting, count = [doc], 0
    while waiting:
        for node in waiting.pop().get("nodes") or ():
            count += 1
            inner = [node.get("childFlow") or node.get("child_flow")]
            inner += [b.get("flow") for b in node.get("branches") or () if isinstance(b, dict)]
            waiting += [flow for flow in inner if isinstance(flow, dict)]
    return count
