"""``mock``: a fixed value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from plaita.base.json import Json
from plaita.engine import steps
from plaita.node.basic import Node

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink


class Mock(Node):
    """Its result is ``value`` as written: nothing in it is evaluated."""

    node_type: ClassVar[str] = "mock"
    node_name: ClassVar[str] = "Mock"
    dry_run_safe: ClassVar[bool | None] = True
    builtin: ClassVar[bool] = True

    value: Any = None

    def link(self, link: NodeLink) -> None:
        fixed: Json = self.value
        link.cn.step = steps.assign(link.cn, lambda _frame: fixed)
