"""Literal results that can never be of the declared type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plaita.base.errors import InputError
from plaita.base.issues import Issue
from plaita.base.json import admit
from plaita.core.validate.view import FlowView
from plaita.engine.types import Property, conform, parse_property
from plaita.node.basic import Node


def literals_fit_their_type(view: FlowView) -> Iterator[Issue]:
    """A literal ``output`` that its ``outputType`` refuses is a warning: the node fails whenever it is reached."""
    for i, node in enumerate(view.nodes):
        declared = _declared(view, node) if is_literal(node.output) else None
        if declared is None:
            continue
        try:
            conform(declared, admit(node.output), "$")
        except InputError as e:
            text = f"{node.id!r} can only fail: {e}"
            yield Issue("warning", "wrong_literal", view.path_of(i, "output"), text, "change it or its type", node.id)


def _declared(view: FlowView, node: Node) -> Property | None:
    """The type that the node's ``output`` must have."""
    if node.node_type == "end" and getattr(node, "result_type", "success") == "success":
        return view.output_type
    raw = getattr(node, "output_type", None)
    if node.node_type != "assignment" or raw is None or getattr(node, "upstream_output", None):
        return None
    try:
        return parse_property(raw)
    except InputError:
        return None


def is_literal(value: Any) -> bool:
    """Is there no expression in it?"""
    match value:
        case str():
            return not value.startswith("$") and "{%" not in value
        case list():
            return all(is_literal(item) for item in value)
        case dict():
            return all(is_literal(item) for item in value.values())
    return True
