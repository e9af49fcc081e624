"""Rules of an installation: in our shape for every load, in the documented shape for one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from plaita.base.errors import FlowLoadError
from plaita.base.issues import Issue
from plaita.core.flow import Flow
from plaita.core.validate import (
    FlowIRGraph,
    FlowIRValidationError,
    FlowView,
    build_flow,
    forbid_node_types_in_childflow,
    register_rule,
    unknown_expression_functions,
    unregister_rule,
    validate_flow_ir,
)
from plaita.engine.expression import ExpressionRegistry, FunctionCategory
from tests.support.flows import chain

ASSIGN = {"id": "a", "type": "assignment", "output": "$F.upper('x')"}
NESTED = chain({"id": "c", "type": "child", "childFlow": chain(ASSIGN)}, flow_id="f")


def no_assignments(view: FlowView) -> Iterator[Issue]:
    for i, node in enumerate(view.nodes):
        if node.node_type == "assignment":
            yield Issue("error", "house", view.path_of(i), "no assignments here", "use a child", node.id)


@pytest.fixture
def house_rule() -> Iterator[None]:
    register_rule(no_assignments)
    yield
    unregister_rule(no_assignments)


@pytest.mark.usefixtures("house_rule")
def test_a_registered_rule_looks_at_every_level_of_every_flow() -> None:
    with pytest.raises(FlowLoadError) as refused:
        Flow.model_validate(NESTED)
    (issue,) = refused.value.issues
    assert (issue.code, issue.path) == ("house", "$.nodes[1].childFlow.nodes[1]")


def test_a_rule_that_was_unregistered_is_silent() -> None:
    register_rule(no_assignments)
    unregister_rule(no_assignments)
    assert Flow.model_validate(NESTED).run() == "X"


def test_a_documented_rule_sees_documents_paths_and_where_they_stand() -> None:
    seen: list[tuple[Any, ...]] = []

    def look(node: dict[str, Any], path: str, graph: FlowIRGraph) -> str | None:
        seen.append((node["id"], path, graph.host_type, graph.host, graph.has_start, node["id"] in graph.ids))
        return None

    validate_flow_ir(NESTED, rules=[look])
    assert sorted(seen, key=str) == [
        ("a", "nodes[c].childFlow.nodes[a]", "child", "c", True, True),
        ("c", "nodes[c]", None, None, True, True),
        ("end", "nodes[c].childFlow.nodes[end]", "child", "c", True, True),
        ("end", "nodes[end]", None, None, True, True),
        ("start", "nodes[c].childFlow.nodes[start]", "child", "c", True, True),
        ("start", "nodes[start]", None, None, True, True),
    ]


def test_what_documented_rules_and_ours_find_is_told_together() -> None:
    broken = chain({**ASSIGN, "next": "nowhere"})

    def grumble(node: dict[str, Any], path: str, graph: FlowIRGraph) -> str | None:
        return "no good" if node["type"] == "end" else None

    with pytest.raises(FlowIRValidationError) as refused:
        validate_flow_ir(broken, rules=[grumble])
    assert {i.code for i in refused.value.issues if i.severity == "error"} == {"dangling_next", "rule"}
    assert isinstance(refused.value, ValueError)
    assert (refused.value.path, refused.value.message) == (
        refused.value.issues[0].path,
        refused.value.issues[0].message,
    )


def test_types_can_be_forbidden_inside_sub_flows() -> None:
    rule = forbid_node_types_in_childflow({"assignment"})
    validate_flow_ir(chain(ASSIGN), rules=[rule])
    with pytest.raises(FlowIRValidationError, match=r"'assignment' are not allowed in sub-flows \(inside child\(c\)\)"):
        validate_flow_ir(NESTED, rules=[rule])


def test_functions_can_be_limited_to_a_registry() -> None:
    own = ExpressionRegistry()
    own.register("uppers", str.upper, FunctionCategory.STRING)
    with pytest.raises(FlowIRValidationError, match=r"unknown function \$F.upper; did you mean 'uppers'"):
        validate_flow_ir(NESTED, rules=[unknown_expression_functions(own)])
    validate_flow_ir(NESTED, rules=[unknown_expression_functions()])


def test_problems_inside_sub_flows_can_be_left_out() -> None:
    broken = chain({"id": "c", "type": "child", "childFlow": chain({**ASSIGN, "output": "$F.nope()"})})
    validate_flow_ir(broken, recursive=False)
    with pytest.raises(FlowIRValidationError, match="nope") as refused:
        validate_flow_ir(broken, path="flows.mine")
    assert refused.value.path == "flows.mine.nodes[1].childFlow.nodes[1].output"


def test_a_flow_that_passes_is_built() -> None:
    assert build_flow(NESTED).run() == "X"
    with pytest.raises(FlowIRValidationError):
        build_flow(chain({**ASSIGN, "next": "nowhere"}))
