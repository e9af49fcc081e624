"""Definition closures: a flow as one immutable document under its hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

from plaita.base.json import Json, decode, encode
from plaita.core.flow import Flow
from plaita.node.basic import Node
from plaita.node.registry import NodeRegistry

FORMAT = 1
LANGUAGE = 1
"""Level of the expression language."""
_FUNCTION = re.compile(rb"\$F\.([A-Za-z_]\w*)")


def close_over(flow: Flow) -> tuple[str, bytes]:
    """Hash and document of a flow: the definition with a manifest of what loading it needs. The hash covers both.

    Raises ``FlowLoadError``: a definition that cannot run is not stored.
    """
    _ = flow.program
    definition = document_of(flow)
    body = encode(definition)
    manifest = {
        "language": LANGUAGE,
        "node_types": {name: 1 for name in sorted({node.node_type for node in nodes_of(flow)})},
        "functions": sorted({m.decode() for m in _FUNCTION.findall(body)}),
    }
    document = encode({"format": FORMAT, "manifest": manifest, "flow": definition})
    return hashlib.sha256(document).hexdigest(), document


def open_closure(document: bytes, registry: NodeRegistry | None = None) -> Flow:
    """The flow of a closure. Raises ``FlowLoadError`` when this process cannot load it."""
    return Flow.model_validate(decode(document)["flow"], registry=registry)


def document_of(flow: Flow) -> dict[str, Json]:
    """The definition as JSON: as it was written, or from the objects it was made of."""
    if flow._raw:
        found: dict[str, Json] = _plain(flow._raw)
        return found
    header = flow.model_dump(exclude={"nodes"}, exclude_defaults=True)
    return {**_plain(header), "nodes": [_plain(node) for node in flow.nodes]}


def _plain(value: Any) -> Json:
    if isinstance(value, Flow):
        return document_of(value)
    if isinstance(value, Node):
        fields = {name: getattr(value, name) for name in value.model_fields_set}
        return {"type": value.node_type, **{k: _plain(v) for k, v in fields.items()}}
    if hasattr(value, "model_dump"):
        return _plain({name: getattr(value, name) for name in value.model_fields_set})
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return getattr(value, "value", value)


def nodes_of(flow: Flow) -> Iterator[Node]:
    """Every node of a compiled flow, those of sub-flows included."""
    work = [flow]
    while work:
        for node in work.pop().nodes:
            yield node
            work += [sub for _, sub, _ in node.sub_flows() if sub is not None]
