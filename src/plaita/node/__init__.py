"""Node types: one file each. A node is a pydantic model that links itself into a graph of the engine."""

from plaita.node.assignment import Assignment
from plaita.node.basic import Node
from plaita.node.end import End
from plaita.node.registry import NodeRegistry, get_default_registry
from plaita.node.start import Start

__all__ = ["Assignment", "End", "Node", "NodeRegistry", "Start", "get_default_registry"]
