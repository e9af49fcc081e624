"""``child``: an inline sub-flow that sees its parent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import field_validator

from plaita.engine.hosts import Inline
from plaita.node.basic import Node
from plaita.node.subflow import read_sub_flow

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink
    from plaita.engine.program import Graph


class FlowNode(Node):
    """A node that runs ``childFlow``: a document, its text, or a ``Flow``."""

    builtin: ClassVar[bool] = True

    child_flow: Any = None

    @field_validator("child_flow", mode="before")
    @classmethod
    def _child_flow(cls, value: Any) -> Any:
        return read_sub_flow(value)

    def sub_flows(self) -> Iterator[tuple[str, Any, str | None]]:
        yield "child_flow", self.child_flow, None

    def body(self, link: NodeLink) -> Graph | None:
        """The compiled sub-flow, or ``None`` with an issue."""
        if self.child_flow is None:
            link.report("child_flow_missing", "child_flow", f"node {self.id!r} needs a childFlow")
            return None
        graph: Graph = self.child_flow.link_under(link, "child_flow", None)
        return graph


class InlineFlow(FlowNode):
    """Runs ``childFlow`` once with the evaluated ``input``; its result is the sub-flow's.

    Without ``input`` the sub-flow inherits the whole ``$INPUT``; a key that is absent in ``input`` is looked up in the
    parent, a key that is null is null.
    """

    node_type: ClassVar[str] = "child"
    node_name: ClassVar[str] = "Child"

    input: Any = None

    def link(self, link: NodeLink) -> None:
        value = link.value(self.input, "input") if "input" in self.model_fields_set else None
        body = self.body(link)
        if body is not None:
            host = Inline(body, value)
            link.cn.host, link.cn.step = host, host.step(link.cn)
