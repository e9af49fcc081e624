"""``FlowBuilder``: a flow put together node by node."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic.alias_generators import to_camel, to_snake

from plaita.base.errors import NotFound
from plaita.base.json import Json
from plaita.base.spelling import suggest
from plaita.core.validate import FlowIRRule, build_flow, validate_flow_ir
from plaita.dsl.nodes import NodeSpec

if TYPE_CHECKING:
    from plaita.core.flow import Flow

_FIELDS: Final = {"input_type": "inputType", "output_type": "outputType", "global_context": "globalContext"}


class NoSuchNode(NotFound, KeyError):
    """A builder has no node of that id."""


class FlowBuilder:
    """A flow in the making. Every method that changes it gives it back, so that calls can be chained.

    with build("price") as b:
        b.add(start(next="net"))
        b.add(assignment("net", "$INPUT.gross / 1.25", next="end"))
        b.add(end(output="$NODE.net"))
    b.run(gross=25)
    """

    def __init__(
        self,
        flow_id: str | None = None,
        input_type: Any = None,
        output_type: Any = None,
        desc: str | None = None,
        version: str | None = None,
        author: str | None = None,
        timeout: Any = None,
        global_context: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        runtime: str = "python",
    ) -> None:
        given = {
            "runtime": runtime, "flow_id": flow_id, "inputType": input_type, "outputType": output_type, "desc": desc,
            "version": version, "author": author, "timeout": timeout, "globalContext": global_context,
            "metadata": metadata,
        }  # fmt: skip
        self._flow: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        self._nodes: list[NodeSpec] = []

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """A builder that begins with a document; all of it is kept."""
        builder = cls()
        builder._flow = copy.deepcopy({key: value for key, value in data.items() if key != "nodes"})
        builder._nodes = copy.deepcopy(list(data.get("nodes") or []))
        return builder

    @property
    def flow_id(self) -> str | None:
        """The id of the flow."""
        return next((self._flow[k] for k in ("flow_id", "flowId", "id") if self._flow.get(k)), None)

    def add(self, node: NodeSpec) -> Self:
        """Add a node: what a factory gives, or any document of a node."""
        if not isinstance(node, dict):
            raise TypeError(f"a node is a document such as start() gives, not {type(node).__name__}")
        self._nodes.append(dict(node))
        return self

    def remove_node(self, node_id: str) -> Self:
        """Remove a node. Raises ``NoSuchNode``, which is a ``KeyError``."""
        found = self._node(node_id)
        self._nodes = [node for node in self._nodes if node is not found]
        return self

    def update_node(self, node_id: str, **fields: Any) -> Self:
        """Set fields of a node, in whichever spelling it has them. Raises ``NoSuchNode``."""
        node = self._node(node_id)
        for name, value in fields.items():
            spelled = next((key for key in (name, to_camel(name), to_snake(name)) if key in node), name)
            node[spelled] = value
        return self

    def reroute(self, node_id: str, *, next: str | None = None, else_next: str | None = None) -> Self:
        """Let a node lead elsewhere. Raises ``NoSuchNode``."""
        given = {"next": next, "else_next": else_next}
        return self.update_node(node_id, **{key: value for key, value in given.items() if value is not None})

    def _node(self, node_id: str) -> NodeSpec:
        found = next((n for n in self._nodes if n.get("id") == node_id), None)
        if found is None:
            ids = [str(n.get("id")) for n in self._nodes]
            raise NoSuchNode(f"there is no node {node_id!r}", suggest(node_id, ids) or f"nodes: {', '.join(ids)}")
        return found

    def to_dict(self) -> dict[str, Any]:
        """The document: a copy, child flows included."""
        return {**copy.deepcopy(self._flow), "nodes": [_expanded(node) for node in self._nodes]}

    def to_json(self, indent: int | None = 2) -> str:
        """The document as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def to_yaml(self) -> str:
        """The document as YAML text."""
        import yaml

        text: str = yaml.safe_dump(self.to_dict(), allow_unicode=True, sort_keys=False)
        return text

    def validate(self, rules: Iterable[FlowIRRule] | None = None) -> None:
        """Raises ``FlowIRValidationError`` with everything that is wrong."""
        validate_flow_ir(self.to_dict(), rules=rules)

    def build(self, rules: Iterable[FlowIRRule] | None = None) -> Flow:
        """The flow. Raises ``FlowIRValidationError``."""
        return build_flow(self.to_dict(), rules=rules)

    def run(self, params: dict[str, Any] | None = None, /, **kwargs: Any) -> Json:
        """Build the flow and run it to its end; see ``Flow.run``."""
        return self.build().run(params, **kwargs)

    async def arun(self, params: dict[str, Any] | None = None, /, **kwargs: Any) -> Json:
        """``run`` inside a running event loop."""
        return await self.build().arun(params, **kwargs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held: ``with`` only groups the lines."""


def _expanded(value: Any) -> Any:
    match value:
        case FlowBuilder():
            return value.to_dict()
        case dict():
            return {key: _expanded(member) for key, member in value.items()}
        case list() | tuple():
            return [_expanded(member) for member in value]
    return copy.deepcopy(value)


def build(
    flow_id: str | None = None,
    *,
    input_type: Any = None,
    output_type: Any = None,
    desc: str | None = None,
    version: str | None = None,
    author: str | None = None,
    timeout: Any = None,
    global_context: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
) -> FlowBuilder:
    """A builder without nodes."""
    return FlowBuilder(flow_id, input_type, output_type, desc, version, author, timeout, global_context, metadata)


def child_flow(
    input_type: Any = None, output_type: Any = None, desc: str | None = None
) -> Callable[[Callable[[FlowBuilder], Any]], FlowBuilder]:
    """Make a function that adds nodes to its builder a child flow: ``@child_flow()`` gives the builder."""

    def decorate(function: Callable[[FlowBuilder], Any]) -> FlowBuilder:
        builder = FlowBuilder(input_type=input_type, output_type=output_type, desc=desc)
        function(builder)
        return builder

    return decorate
