"""Checking documents of flows, with rules of one's own; see ``plaita.core.validate``."""

from __future__ import annotations

from plaita.core.validate import (
    FlowIRGraph,
    FlowIRRule,
    FlowIRValidationError,
    build_flow,
    forbid_node_types_in_childflow,
    unknown_expression_functions,
    validate_flow_ir,
)

DEFAULT_RULES: tuple[FlowIRRule, ...] = ()
"""Rules in the documented shape that are always applied: none, since ``validate_flow_ir`` applies all of our own."""

__all__ = [
    "DEFAULT_RULES", "FlowIRGraph", "FlowIRRule", "FlowIRValidationError", "build_flow",
    "forbid_node_types_in_childflow", "unknown_expression_functions", "validate_flow_ir",
]  # fmt: skip
