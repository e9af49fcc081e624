"""The node types of this process under their older names; ``get_default_registry()`` is the way to them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from plaita.node.registry import get_default_registry

if TYPE_CHECKING:
    from plaita.node.basic import Node


def node_register(node_cls: type[Node]) -> None:
    """Register a class in this process."""
    _warn("node_register(cls)", "get_default_registry().register(cls)")
    get_default_registry().register(node_cls)


def parse_node(node_dict: dict[str, Any] | Node) -> Node:
    """A node from its document."""
    _warn("parse_node(document)", "get_default_registry().parse_node(document)")
    return get_default_registry().parse_node(node_dict)


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=3)


class ProcessNodes(MutableMapping[str, "type[Node]"]):
    """The registry of the process as a dictionary: type to class."""

    def __getitem__(self, node_type: str) -> type[Node]:
        found = get_default_registry().get(node_type)
        if found is None:
            raise KeyError(node_type)
        return found

    def __setitem__(self, node_type: str, cls: type[Node]) -> None:
        if cls.node_type != node_type:
            raise ValueError(f"{cls.__name__} is of type {cls.node_type!r}, not {node_type!r}")
        get_default_registry().register(cls)

    def __delitem__(self, node_type: str) -> None:
        if node_type not in get_default_registry():
            raise KeyError(node_type)
        get_default_registry().unregister(node_type)

    def __iter__(self) -> Iterator[str]:
        return iter(get_default_registry())

    def __len__(self) -> int:
        return len(get_default_registry())


nodes = ProcessNodes()
