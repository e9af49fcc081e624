"""Node types: one file each. A node is a pydantic model that links itself into a graph of the engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plaita.node.assignment import Assignment
    from plaita.node.basic import Node
    from plaita.node.code import register_code_node
    from plaita.node.decide import Bool
    from plaita.node.end import End
    from plaita.node.registry import NodeRegistry, get_default_registry
    from plaita.node.start import Start

__all__ = ["Assignment", "Bool", "End", "Node", "NodeRegistry", "Start", "get_default_registry", "register_code_node"]

_HOMES = {
    "Assignment": "assignment",
    "Bool": "decide",
    "End": "end",
    "Node": "basic",
    "NodeRegistry": "registry",
    "Start": "start",
    "get_default_registry": "registry",
    "register_code_node": "code",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'plaita.node' has no attribute {name!r}")
    value = getattr(import_module(f"plaita.node.{home}"), name)
    globals()[name] = value
    return value
