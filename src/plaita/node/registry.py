"""Which node types there are: built-in ones, registered ones, plug-ins (entry points ``plaita.nodes``)."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, TypeVar

from plaita.base.errors import NotSupported
from plaita.base.spelling import suggest

if TYPE_CHECKING:
    from plaita.node.basic import Node

N = TypeVar("N", bound="type[Node]")

BUILT_IN = {
    "approval": "approval:ApprovalNode",
    "assignment": "assignment:Assignment",
    "calculate": "calculate:Calculate",
    "case": "decide:SwitchLegacy",
    "child": "child:InlineFlow",
    "code": "code:CodeNode",
    "delay": "delay:DelayNode",
    "end": "end:End",
    "event": "event_node:EventNode",
    "filter": "loop:Filter",
    "find": "loop:Find",
    "http": "http:HTTP",
    "http_callback": "http_callback:HttpCallbackNode",
    "if": "decide:Bool",
    "kafka_queue": "kafka_queue:KafkaQueueNode",
    "loop": "loop:Loop",
    "map": "loop:Map",
    "mock": "mock:Mock",
    "parallel": "concurrent:Parallel",
    "redis": "redis:RedisNode",
    "redis_queue": "redis_queue:RedisQueueNode",
    "reduce": "loop:Reduce",
    "reference": "reference:ReferenceFlow",
    "start": "start:Start",
    "switch": "decide:Switch",
    "while": "loop:While",
}
"""Module and class of each built-in type; a module is imported when a flow first names one of its types."""


class NodeRegistry:
    """Node classes by type. A new registry holds the built-in types; ``parent`` is asked for what is missing here."""

    def __init__(self, *, auto_discover: bool = False, parent: NodeRegistry | None = None) -> None:
        self._classes: dict[str, type[Node] | str] = {} if parent else dict(BUILT_IN)
        self._broken: dict[str, str] = {}
        self._parent = parent
        if auto_discover:
            self.discover()

    def register(self, cls: N) -> N:
        """Add a class under its ``node_type``, replacing another; usable as a decorator."""
        if not cls.node_type:
            raise NotSupported(f"{cls.__name__} has no node_type", "set the class attribute node_type")
        self._classes[cls.node_type] = cls
        return cls

    def unregister(self, node_type: str) -> None:
        """Forget a type; unknown types are ignored."""
        self._classes.pop(node_type, None)

    def get(self, node_type: str) -> type[Node] | None:
        """The class of a type, or ``None``."""
        found = self._classes.get(node_type)
        if isinstance(found, str):
            module, _, name = found.partition(":")
            cls: type[Node] = getattr(import_module(f"plaita.node.{module}"), name)
            self._classes[node_type] = cls
            return cls
        if found is None and self._parent is not None:
            return self._parent.get(node_type)
        return found

    def parse_node(self, value: dict[str, Any] | Node) -> Node:
        """A node from its document. Raises ``NotSupported`` for an unknown type, ``ValidationError`` for bad fields."""
        from plaita.node.basic import Node

        if isinstance(value, Node):
            return value
        node_type = value.get("type")
        cls = self.get(node_type) if isinstance(node_type, str) else None
        if cls is None:
            raise NotSupported(*self.unknown(node_type))
        return cls.model_validate(value)

    def unknown(self, node_type: object) -> tuple[str, str]:
        """Message and hint for a type nobody registered."""
        if isinstance(node_type, str) and node_type in self._broken:
            return f"node type {node_type!r} could not be loaded: {self._broken[node_type]}", ""
        known = self.list_types()
        if not isinstance(node_type, str):
            return "a node needs a 'type'", f"types: {', '.join(known)}"
        hint = suggest(node_type, known) or f"types: {', '.join(known)}"
        return (
            f"unknown node type {node_type!r}",
            f"{hint}; a custom type is found through metadata.imports or --import",
        )

    def list_types(self) -> list[str]:
        """All known types, sorted."""
        inherited = self._parent.list_types() if self._parent is not None else []
        return sorted({*self._classes, *inherited})

    def copy(self) -> NodeRegistry:
        """An independent registry with the same classes."""
        twin = NodeRegistry(parent=self._parent)
        twin._classes = dict(self._classes)
        return twin

    def discover(self) -> None:
        """Load plug-ins. One that fails is remembered and reported when a flow names its type."""
        for point in entry_points(group="plaita.nodes"):
            try:
                cls = point.load()
                self._classes[point.name] = cls
            except (ImportError, AttributeError, TypeError) as e:
                self._broken[point.name] = f"{type(e).__name__}: {e}"

    def __contains__(self, node_type: object) -> bool:
        return isinstance(node_type, str) and self.get(node_type) is not None

    def __len__(self) -> int:
        return len(self.list_types())

    def __bool__(self) -> bool:
        """A registry is something even when it is empty: it stands for itself, not for the default one."""
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.list_types())


_default: list[NodeRegistry] = []


def get_default_registry() -> NodeRegistry:
    """The registry of the process; plug-ins are discovered at the first call."""
    if not _default:
        _default.append(NodeRegistry(auto_discover=True))
    return _default[0]


def init_default_registry(*extra: type[Node], auto_discover: bool = True) -> NodeRegistry:
    """Start the process registry afresh with some more classes."""
    _default[:] = [NodeRegistry(auto_discover=auto_discover)]
    for cls in extra:
        _default[0].register(cls)
    return _default[0]
