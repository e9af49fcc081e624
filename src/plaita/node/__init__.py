"""Node types: one file each. A node is a pydantic model that links itself into a graph of the engine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plaita.node.assignment import Assignment, AssignmentError
    from plaita.node.basic import Node
    from plaita.node.child import InlineFlow
    from plaita.node.code import CodeNode, register_code_node
    from plaita.node.concurrent import Parallel
    from plaita.node.decide import Bool, Logic, Switch, SwitchLegacy
    from plaita.node.end import End
    from plaita.node.event_node import EventNode
    from plaita.node.http import HTTP
    from plaita.node.loop import BaseCollectionNode, Filter, Find, Loop, Map, Reduce, While
    from plaita.node.mock import Mock
    from plaita.node.process_registry import node_register, nodes, parse_node
    from plaita.node.reference import ReferenceFlow
    from plaita.node.registry import NodeRegistry, get_default_registry, init_default_registry
    from plaita.node.start import Start

__all__ = [
    "Assignment",
    "AssignmentError",
    "BaseCollectionNode",
    "Bool",
    "CodeNode",
    "End",
    "EventNode",
    "Filter",
    "Find",
    "HTTP",
    "InlineFlow",
    "Logic",
    "Loop",
    "Map",
    "Mock",
    "Node",
    "NodeRegistry",
    "Parallel",
    "Reduce",
    "ReferenceFlow",
    "Start",
    "Switch",
    "SwitchLegacy",
    "While",
    "get_default_registry",
    "init_default_registry",
    "node_register",
    "nodes",
    "parse_node",
    "register_code_node",
]

_HOMES = {
    "Assignment": "assignment",
    "AssignmentError": "assignment",
    "BaseCollectionNode": "loop",
    "Bool": "decide",
    "CodeNode": "code",
    "End": "end",
    "EventNode": "event_node",
    "Filter": "loop",
    "Find": "loop",
    "HTTP": "http",
    "InlineFlow": "child",
    "Logic": "decide",
    "Loop": "loop",
    "Map": "loop",
    "Mock": "mock",
    "Node": "basic",
    "NodeRegistry": "registry",
    "Parallel": "concurrent",
    "Reduce": "loop",
    "ReferenceFlow": "reference",
    "Start": "start",
    "Switch": "decide",
    "SwitchLegacy": "decide",
    "While": "loop",
    "get_default_registry": "registry",
    "init_default_registry": "registry",
    "node_register": "process_registry",
    "nodes": "process_registry",
    "parse_node": "process_registry",
    "register_code_node": "code",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'plaita.node' has no attribute {name!r}")
    value = getattr(import_module(f"plaita.node.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
