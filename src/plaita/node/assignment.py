"""``assignment``: computes a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from plaita.base.errors import InputError
from plaita.engine import steps
from plaita.engine.failure import NODE_CODE, Failure, FailureRaised
from plaita.engine.types import Property, parse_property
from plaita.node.basic import Node

if TYPE_CHECKING:
    from plaita.engine.frames import Frame
    from plaita.engine.linking import NodeLink
    from plaita.engine.program import Eval


class AssignmentError(ValueError):
    """No entry of ``upstreamOutput`` fits; the cause of the node's error."""


class Assignment(Node):
    """The evaluated ``output``, checked against ``outputType``.

    ``upstreamOutput`` chooses by the node that ran before: ``[{"upstream": id, "value": expression}, …]``; a single
    entry is taken unconditionally.
    """

    node_type: ClassVar[str] = "assignment"
    node_name: ClassVar[str] = "Assignment"
    dry_run_safe: ClassVar[bool | None] = True
    builtin: ClassVar[bool] = True

    output_type: Any = None
    upstream_output: list[dict[str, Any]] = []

    def link(self, link: NodeLink) -> None:
        output_type = property_of(link, self.output_type, "output_type")
        value = self._upstream(link) if self.upstream_output else link.value(self.output, "output")
        link.cn.step = steps.assign(link.cn, value, output_type)

    def _upstream(self, link: NodeLink) -> Eval:
        choices: list[tuple[str, Eval]] = []
        for i, entry in enumerate(self.upstream_output):
            where = f"upstream_output[{i}]"
            value = entry.get("value", entry.get("output"))
            choices.append((str(entry.get("upstream")), link.value(value, f"{where}.value")))
            if "upstream" not in entry:
                link.report("upstream_missing", where, "an entry needs 'upstream': the id of the node before")
        if len(choices) == 1:
            return choices[0][1]
        node_id = self.id

        def choose(frame: Frame) -> Any:
            for upstream, value in choices:
                if upstream == frame.last_id:
                    return value(frame)
            text = f"node {node_id!r} (assignment): no upstreamOutput for {frame.last_id!r}"
            raise FailureRaised(Failure("node_error", NODE_CODE, text, origin=AssignmentError(text)))

        return choose


def property_of(link: NodeLink, raw: Any, field: str) -> Property | None:
    """Parse a declared type; nonsense is an issue."""
    if raw is None:
        return None
    try:
        return parse_property(raw)
    except InputError as e:
        link.report("bad_type", field + e.path[1:], e.reason)
        return None
