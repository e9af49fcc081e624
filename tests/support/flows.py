"""Small flows for tests, written short."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

from plaita.core.flow import Flow
from plaita.node.basic import Node
from plaita.node.registry import NodeRegistry


def chain(*nodes: dict[str, Any], output: Any = None, **header: Any) -> dict[str, Any]:
    """A flow of nodes one after another; ``output`` is the result of the last unless given."""
    found = [{"id": "start", "type": "start"}, *(dict(n) for n in nodes)]
    result = output if output is not None else f'$NODE["{found[-1]["id"]}"]'
    found.append({"id": "end", "type": "end", "output": result})
    for here, following in pairwise(found):
        if here["type"] not in ("if", "switch", "case"):
            here.setdefault("next", following["id"])
    return {"nodes": found, **header}


def failing(code: Any = "E1") -> dict[str, Any]:
    """A flow that ends with a business error."""
    end = {"id": "end", "type": "end", "resultType": "error", "error": {"code": code, "message": "no"}}
    return {"nodes": [{"id": "start", "type": "start", "next": "end"}, end]}


class Outside(Node):
    """An effectful node whose fate the test decides; performed for real it gives its input."""

    node_type: ClassVar[str] = "outside"
    provides: ClassVar[frozenset[str] | None] = frozenset()
    input: Any = None

    def execute(self, execution: Any) -> Any:
        return execution.evaluate(self.input)


def registry(*classes: type[Node]) -> NodeRegistry:
    """The built-in types, ``outside`` and more."""
    found = NodeRegistry()
    found.register(Outside)
    for cls in classes:
        found.register(cls)
    return found


def flow_of(document: dict[str, Any], *classes: type[Node]) -> Flow:
    """The flow of a document."""
    return Flow.model_validate(document, registry=registry(*classes))


def outside(node_id: str = "call", **fields: Any) -> dict[str, Any]:
    """An effectful node."""
    return {"id": node_id, "type": "outside", **fields}


def event(node_id: str = "wait", **fields: Any) -> dict[str, Any]:
    """A waiting node."""
    return {"id": node_id, "type": "event", "eventType": "news", **fields}


def parallel(branches: dict[str, dict[str, Any]], node_id: str = "p", **fields: Any) -> dict[str, Any]:
    """A node with branches by name."""
    found = [{"name": name, "flow": flow} for name, flow in branches.items()]
    return {"id": node_id, "type": "parallel", "branches": found, **fields}
