"""Definition closures: a flow as one immutable document under its hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from plaita.base.errors import FlowLoadError
from plaita.base.issues import Issue
from plaita.base.json import Json, decode, encode
from plaita.core.flow import Flow
from plaita.core.loading import levels
from plaita.core.references import at_hand
from plaita.node.basic import Node
from plaita.node.registry import NodeRegistry

FORMAT = 1
LANGUAGE = 1
"""Level of the expression language."""
_LEAVES = frozenset({str, int, float, bool, type(None)})
_FUNCTION = re.compile(rb"\$F\.([A-Za-z_]\w*)")


def close_over(flow: Flow) -> tuple[str, bytes]:
    """Hash and document of a flow: the definition, those it refers to, and a manifest of what loading them needs.

    The hash covers all of it. It is kept with the flow, and made anew when anything of the flow has been changed in any
    way. Raises ``FlowLoadError``: a definition that cannot run is not stored.
    """
    refuse_missing(flow)
    said = [_said(flow), *(said for wanted, one in flow._references.items() for said in (*wanted, _said(one)))]
    kept: Closed | None = flow._closed
    if kept is None or kept.said != said:
        kept = flow._closed = Closed(said, *_closed(flow))
    return kept.closure, kept.document


@dataclass(frozen=True, slots=True)
class Closed:
    """The closure of a flow, and all that it was made of: as long as that is the same, the closure is."""

    said: list[bytes | str]
    closure: str
    document: bytes


def _said(flow: Flow) -> bytes:
    """All that a definition says, in short time: a document is JSON, and is written as it is."""
    try:
        return encode(flow._raw or document_of(flow))
    except TypeError:
        return encode(document_of(flow))


def _closed(flow: Flow) -> tuple[str, bytes]:
    definition = document_of(flow)
    referred = [(*wanted, document_of(one)) for wanted, one in sorted(flow._references.items(), key=lambda kv: kv[0])]
    body = encode([definition, *(one for _, _, one in referred)])
    node_types = {node.node_type for one in (flow, *flow._references.values()) for node in nodes_of(one)}
    manifest = {
        "language": LANGUAGE,
        "node_types": {name: 1 for name in sorted(node_types)},
        "functions": sorted({m.decode() for m in _FUNCTION.findall(body)}),
    }
    content: dict[str, Json] = {"format": FORMAT, "manifest": manifest, "flow": definition}
    if referred:
        content["flows"] = [{"flow_id": i, "version": v, "flow": one} for i, v, one in referred]
    document = encode(content)
    return hashlib.sha256(document).hexdigest(), document


def refuse_missing(flow: Flow) -> None:
    """Raises ``FlowLoadError`` when a flow that it refers to was not found."""
    if flow.missing:
        names = ", ".join(repr(f"{i} {v}".rstrip()) for i, v in flow.missing)
        hint = "put their files beside this one, or publish them"
        raise FlowLoadError([Issue("error", "reference_missing", "$", f"it refers to flows not found: {names}", hint)])


def open_closure(document: bytes, registry: NodeRegistry | None = None) -> Flow:
    """The flow of a closure. Raises ``FlowLoadError`` when this process cannot load it."""
    content = decode(document)
    referred = {(one["flow_id"], one["version"]): one["flow"] for one in content.get("flows", ())}
    return Flow.model_validate(content["flow"], registry=registry, resolver=at_hand(referred))


def definition_of(document: bytes) -> Json:
    """The definition in a closure as it was written."""
    return decode(document)["flow"]


def document_of(flow: Flow) -> dict[str, Json]:
    """The definition as JSON: as it was written, or from the objects it was made of."""
    if flow._raw:
        found: dict[str, Json] = _plain(flow._raw)
        return found
    header = flow.model_dump(exclude={"nodes"}, exclude_defaults=True)
    return {**_plain(header), "nodes": [_plain(node) for node in flow.nodes]}


def _plain(value: Any) -> Json:
    kind = type(value)
    if kind in _LEAVES:
        return value
    if kind is dict:
        return {key: _plain(item) for key, item in value.items()}
    if kind is list:
        return [_plain(item) for item in value]
    return _plain_object(value)


def _plain_object(value: Any) -> Json:
    if isinstance(value, Flow):
        return document_of(value)
    if isinstance(value, Node):
        return {"type": value.node_type, **_fields(value)}
    if isinstance(value, BaseModel):
        return _fields(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return getattr(value, "value", value)


def _fields(value: BaseModel) -> dict[str, Json]:
    """What was set of an object, in an order that is the same in every process."""
    return {name: _plain(getattr(value, name)) for name in sorted(value.model_fields_set)}


def nodes_of(flow: Flow) -> Iterator[Node]:
    """Every node of a compiled flow, those of sub-flows included."""
    for level in levels(flow):
        yield from level.nodes
