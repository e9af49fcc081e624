"""``start``: where a flow begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from plaita.engine import steps
from plaita.node.basic import Node

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink


class Start(Node):
    """The entry of a flow. Its result is null."""

    node_type: ClassVar[str] = "start"
    node_name: ClassVar[str] = "Start"
    dry_run_safe: ClassVar[bool | None] = True
    builtin: ClassVar[bool] = True

    def link(self, link: NodeLink) -> None:
        link.cn.step = steps.pass_through(link.cn)
