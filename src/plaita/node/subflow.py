"""Sub-flows inside nodes. What a flow is, the layer above knows; it installs how to read and link one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink
    from plaita.engine.program import Graph


class SubFlow(Protocol):
    """A flow inside a node."""

    def link_under(self, link: NodeLink, field: str, key: str | None) -> Graph:
        """Compile as the sub-flow of a node."""

    def link_apart(self, link: NodeLink, flow_id: str) -> Graph | None:
        """Compile as the flow a node refers to: nothing of the node's scope is seen. ``None``: it does not load."""


_readers: list[Callable[[Any], SubFlow]] = []


def install_reader(read: Callable[[Any], SubFlow]) -> None:
    """Say how a document, a text or an object becomes a flow."""
    _readers[:] = [read]


def read_sub_flow(value: Any) -> Any:
    """A flow from a document, JSON text or a flow object; ``None`` stays ``None``."""
    if value is None or not _readers:
        return value
    return _readers[0](value)
