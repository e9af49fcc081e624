"""Load rules, one a file: each looks at one flow level and yields issues."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from plaita.base.issues import Issue
from plaita.core.validate.cycles import cycles_can_be_left
from plaita.core.validate.ends import every_sub_flow_can_end
from plaita.core.validate.keys import keys_are_known
from plaita.core.validate.order import results_exist_when_read
from plaita.core.validate.reach import every_node_is_reachable
from plaita.core.validate.starts import there_is_one_start
from plaita.core.validate.switches import switches_have_a_default
from plaita.core.validate.view import FlowView

Rule = Callable[[FlowView], Iterator[Issue]]

RULES: tuple[Rule, ...] = (
    there_is_one_start,
    keys_are_known,
    every_node_is_reachable,
    every_sub_flow_can_end,
    switches_have_a_default,
    results_exist_when_read,
    cycles_can_be_left,
)

__all__ = ["RULES", "FlowView", "Rule"]
