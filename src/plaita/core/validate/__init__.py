"""Load rules, one a file: each looks at one flow level and yields issues."""

from __future__ import annotations

from plaita.core.validate.cycles import cycles_can_be_left
from plaita.core.validate.ends import every_sub_flow_can_end
from plaita.core.validate.environment import environment_is_exposed
from plaita.core.validate.keys import keys_are_known
from plaita.core.validate.literals import literals_fit_their_type
from plaita.core.validate.order import results_exist_when_read
from plaita.core.validate.plugins import (
    FlowIRGraph,
    FlowIRRule,
    FlowIRValidationError,
    Rule,
    build_flow,
    forbid_node_types_in_childflow,
    register_rule,
    registered_rules,
    unknown_expression_functions,
    unregister_rule,
    validate_flow_ir,
)
from plaita.core.validate.reach import every_node_is_reachable
from plaita.core.validate.starts import there_is_one_start
from plaita.core.validate.switches import switches_have_a_default
from plaita.core.validate.upstreams import upstreams_lead_here
from plaita.core.validate.view import FlowView

RULES: tuple[Rule, ...] = (
    there_is_one_start,
    keys_are_known,
    every_node_is_reachable,
    every_sub_flow_can_end,
    switches_have_a_default,
    results_exist_when_read,
    cycles_can_be_left,
    literals_fit_their_type,
    environment_is_exposed,
    upstreams_lead_here,
)

__all__ = [
    "RULES", "FlowIRGraph", "FlowIRRule", "FlowIRValidationError", "FlowView", "Rule", "build_flow",
    "forbid_node_types_in_childflow", "register_rule", "registered_rules", "unknown_expression_functions",
    "unregister_rule", "validate_flow_ir",
]  # fmt: skip
