"""``end``: finishes a flow with a value or a business error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import field_validator

from plaita.engine import steps
from plaita.node.basic import Node
from plaita.node.computed import is_computed

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink

RESULT_TYPES = ("success", "nop", "error")


class End(Node):
    """``resultType`` ``success`` gives the evaluated ``output``, ``nop`` null, ``error`` fails with ``error.code`` and
    ``error.message`` (both evaluated; any code, number or text; -500 without one). A ``next`` is not followed."""

    node_type: ClassVar[str] = "end"
    node_name: ClassVar[str] = "End"
    dry_run_safe: ClassVar[bool | None] = True
    builtin: ClassVar[bool] = True

    result_type: str = "success"
    error: Any = None

    @field_validator("result_type")
    @classmethod
    def _result_type(cls, value: str) -> str:
        if value not in RESULT_TYPES:
            raise ValueError(f"{value!r} is none of {', '.join(RESULT_TYPES)}")
        return value

    def link_successor(self, link: NodeLink) -> None:
        """Nothing follows."""

    def targets(self) -> Iterator[tuple[str, Any]]:
        return iter(())

    def link(self, link: NodeLink) -> None:
        cn = link.cn
        if self.result_type != "error":
            output = link.value(self.output if self.result_type == "success" else None, "output")
            cn.step = steps.end(cn, output, link.graph.output_type)
            return
        if not (isinstance(self.error, dict) and self.error) and not is_computed(self.error):
            link.report("error_missing", "error", "an end with resultType 'error' needs error: {code, message}")
        cn.step = steps.end_with_error(cn, link.value(self.error, "error"))
