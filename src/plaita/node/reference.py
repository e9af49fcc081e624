"""``reference``: another flow by its id, in a scope of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import AliasChoices, Field, field_validator

from plaita.engine.failure import NODE_CODE, Failure, FailureRaised
from plaita.engine.frames import Frame
from plaita.engine.hosts import Inline
from plaita.engine.program import CNode
from plaita.node.basic import Node
from plaita.node.subflow import read_sub_flow

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink


class ReferenceFlow(Node):
    """Runs the flow ``flowId`` once with the evaluated ``input``; its result is that flow's output.

    The flow sees nothing of this one: ``input`` (``{}`` when left out) becomes its ``$INPUT`` after its defaults are
    applied and its input type is checked; ``$PARENT`` is empty. It is looked for in the files beside this one, then
    among the published flows; without ``flowVersion`` the latest is taken. An execution keeps the definition it was
    started with. References may be 50 deep and must not lead back.

    A program may assign ``child_flow`` instead.
    """

    node_type: ClassVar[str] = "reference"
    node_name: ClassVar[str] = "Reference"
    builtin: ClassVar[bool] = True

    flow_id: str | None = Field(None, validation_alias=AliasChoices("flow_id", "flowId", "flowID"))
    flow_version: str | None = Field(None, validation_alias=AliasChoices("flow_version", "flowVersion"))
    input: Any = None
    child_flow: Any = None

    @field_validator("flow_version", mode="before")
    @classmethod
    def _flow_version(cls, value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return str(value) if is_number else value

    @field_validator("child_flow", mode="before")
    @classmethod
    def _child_flow(cls, value: Any) -> Any:
        return read_sub_flow(value)

    def sub_flows(self) -> Iterator[tuple[str, Any, str | None]]:
        yield "child_flow", self.child_flow, None

    def link(self, link: NodeLink) -> None:
        if self.flow_id is None and self.child_flow is None:
            link.report("bad_field", "flow_id", "'flow_id' is missing", hint="name the flow to run")
            return
        given = {} if self.input is None and "input" not in self.model_fields_set else self.input
        value = link.value(given, "input")
        wanted = (self.flow_id or "", self.flow_version or "")
        flow = read_sub_flow(self.child_flow) or link.linking.resolve(*wanted)
        if flow is None:
            self._missing(link, wanted)
            return
        if self.flow_id is not None:
            link.linking.references[wanted] = flow
        graph = flow.link_apart(link, self.flow_id or "")
        if graph is not None:
            host = Inline(graph, value)
            link.cn.host, link.cn.step = host, host.step(link.cn)

    def _missing(self, link: NodeLink, wanted: tuple[str, str]) -> None:
        flow_id, version = wanted
        text = f"flow {flow_id!r}{f' version {version!r}' if version else ''} is not known here"
        hint = "put its file beside this one, or publish it"
        link.linking.missing.append(wanted)
        link.report("reference_missing", "flow_id", text, hint=hint, severity="warning")
        failure = Failure("not_found", NODE_CODE, f"node {self.id!r} (reference): {text}; {hint}")

        def step(frame: Frame) -> CNode | None:
            raise FailureRaised(failure)

        link.cn.step = step
