"""Flows written in Python: node by node with ``build`` and ``linear``, or as functions in ``plaita.dsl.codeflow``."""

from __future__ import annotations

from plaita.dsl.builder import FlowBuilder, NoSuchNode, build, child_flow
from plaita.dsl.ir_validate import (
    DEFAULT_RULES,
    FlowIRGraph,
    FlowIRRule,
    FlowIRValidationError,
    build_flow,
    forbid_node_types_in_childflow,
    unknown_expression_functions,
    validate_flow_ir,
)
from plaita.dsl.linear import LinearBuilder, linear
from plaita.dsl.nodes import (
    approval,
    assignment,
    branch,
    case,
    child,
    code,
    cond,
    cond_group,
    delay,
    end,
    error_handler,
    event,
    filter,
    find,
    http,
    if_,
    loop,
    map,
    mock,
    node,
    parallel,
    parallel_branch,
    reduce,
    reference,
    start,
    switch,
    while_,
)

__all__ = [
    "DEFAULT_RULES", "FlowBuilder", "FlowIRGraph", "FlowIRRule", "FlowIRValidationError", "LinearBuilder", "NoSuchNode",
    "approval", "assignment", "branch", "build", "build_flow", "case", "child", "child_flow", "code", "cond",
    "cond_group", "delay", "end", "error_handler", "event", "filter", "find", "forbid_node_types_in_childflow", "http",
    "if_", "linear", "loop", "map", "mock", "node", "parallel", "parallel_branch", "reduce", "reference", "start",
    "switch", "unknown_expression_functions", "validate_flow_ir", "while_",
]  # fmt: skip
