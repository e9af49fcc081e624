"""Loading a flow: every problem at once, each with its code, its path, its place in the text and what to do."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from plaita.base.errors import FlowLoadError
from plaita.base.issues import Issue
from plaita.core.flow import Flow
from tests.support.flows import chain, event, outside, parallel, registry

SRC = Path(__file__).parents[2] / "src" / "plaita"
DEEP: Any = json.loads("[" * 500 + "]" * 500)


def child(flow: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "c", "type": "child", "childFlow": flow, **fields}


def assign(output: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "a", "type": "assignment", "output": output, **fields}


def decide(**fields: Any) -> dict[str, Any]:
    return {"id": "i", "type": "if", "condition": "$INPUT.x", "next": "end", "elseNext": "end", **fields}


class Row(NamedTuple):
    """One finding: ``at`` is the text that stands at its place, ``hint`` a part of its hint."""

    code: str
    document: dict[str, Any]
    path: str
    at: str
    hint: str = ""
    severity: str = "error"


INNER = "$.nodes[1].childFlow"
ROWS = [
    Row("no_start", {"nodes": [{"id": "e", "type": "end"}]}, "$.nodes", "[", '"type": "start"'),
    Row("no_start", chain(child({"nodes": [{"id": "e", "type": "end"}]})), f"{INNER}.nodes", "["),
    Row("no_end", chain(child({"nodes": [{"id": "s", "type": "start"}]})), f"{INNER}.nodes", "[", '"type": "end"'),
    Row("duplicate_id", chain(assign(1), assign(2)), "$.nodes[2].id", '"a"'),
    Row("dangling_next", chain(assign(1, next="endd")), "$.nodes[1].next", '"endd"', "'end'"),
    Row("dangling_next", chain(decide(elseNext="no")), "$.nodes[1].elseNext", '"no"'),
    Row("dangling_next", chain(decide(else_next="no", elseNext=None) | {}), "$.nodes[1].elseNext", "null"),
    Row(
        "dangling_next",
        chain({"id": "k", "type": "case", "target": 1, "cases": [{"id": "gone", "value": 1}], "default": "end"}),
        "$.nodes[1].cases[0].id",
        '"gone"',
    ),
    Row("unknown_node_type", chain({"id": "a", "type": "whiel"}), "$.nodes[1].type", '"whiel"', "'while'"),
    Row("unknown_node_type", chain({"id": "a", "type": None}), "$.nodes[1].type", "null", "types: "),
    Row(
        "unknown_branch",
        chain(parallel({"left": chain()}, joinBranches=["lefd"])),
        "$.nodes[1].joinBranches[0]",
        '"lefd"',
        "'left'",
    ),
    Row(
        "duplicate_branch",
        chain(
            {
                "id": "p",
                "type": "parallel",
                "branches": [{"name": "x", "flow": chain()}, {"name": "x", "flow": chain()}],
            }
        ),
        "$.nodes[1].branches[1].name",
        '"x"',
    ),
    Row(
        "branch_flow_missing",
        chain({"id": "p", "type": "parallel", "branches": [{"name": "x"}]}),
        "$.nodes[1].branches[0]",
        "{",
    ),
    Row("child_flow_missing", chain({"id": "c", "type": "child"}), "$.nodes[1].child_flow", "{"),
    Row("child_flow_missing", chain({"id": "m", "type": "map", "collection": []}), "$.nodes[1].child_flow", "{"),
    Row(
        "wrong_literal",
        chain(assign({"n": "x"}, outputType={"type": "object", "children": {"n": {"type": "integer"}}})),
        "$.nodes[1].output",
        "{",
        severity="warning",
    ),
    Row(
        "wrong_literal",
        chain(output="x", outputType={"type": "integer"}),
        "$.nodes[1].output",
        '"x"',
        severity="warning",
    ),
    Row(
        "env_not_exposed",
        chain(decide(condition="$ENV.X == 'y'")),
        "$.nodes[1].condition",
        '"$ENV',
        "exposeEnv",
        severity="warning",
    ),
    Row(
        "unused_upstream",
        chain(assign(None, upstreamOutput=[{"upstream": "strat", "value": 1}, {"upstream": "start", "value": 2}])),
        "$.nodes[1].upstreamOutput[0].upstream",
        '"strat"',
        "'start'",
        severity="warning",
    ),
    Row("misspelled_key", chain(assign(1, outptu=2)), "$.nodes[1].outptu", "2", "'output'"),
    Row("misspelled_key", chain(assign(1, Output=2)), "$.nodes[1].Output", "2", "'output'"),
    Row("misspelled_key", chain(timeouts=5), "$.timeouts", "5", "'timeout'"),
    Row(
        "misspelled_key",
        chain(outside(errorHandler={"retryTime": 3})),
        "$.nodes[1].errorHandler.retryTime",
        "3",
        "'retryTimes'",
    ),
    Row(
        "misspelled_key",
        chain(outside(error_handler={"strategi": "abort"})),
        "$.nodes[1].error_handler.strategi",
        '"abort"',
    ),
    Row(
        "misspelled_key",
        chain(outside(errorHandler={"retry": {"atempts": 3}})),
        "$.nodes[1].errorHandler.retry.atempts",
        "3",
        "'attempts'",
    ),
    Row(
        "misspelled_key",
        chain(outside(timeoutHandler={"defaultVal": 3, "defaultValu": 4})),
        "$.nodes[1].timeoutHandler.defaultValu",
        "4",
    ),
    Row(
        "misspelled_key",
        chain({"id": "s", "type": "switch", "branches": [{"next": "end", "isDefault": True, "conditon": 1}]}),
        "$.nodes[1].branches[0].conditon",
        "1",
        "'condition'",
    ),
    Row("misspelled_key", chain(child(chain(nodess=[]))), f"{INNER}.nodess", "[", "'nodes'"),
    Row("misspelled_key", chain(inputType={"type": "any", "defalut": 1}), "$.inputType.defalut", "1", "'default'"),
    Row(
        "misspelled_key",
        chain(output_type={"type": "object", "properties": {"n": {"type": "any", "lable": 1, "requierd": True}}}),
        "$.output_type.properties.n.requierd",
        "true",
        "'required'",
    ),
    Row(
        "unknown_key",
        chain(assign([1], outputType={"type": "array", "items": {"type": "any", "minimum": 1}})),
        "$.nodes[1].outputType.items.minimum",
        "1",
        severity="warning",
    ),
    Row("unknown_key", chain(assign(1, colour="red")), "$.nodes[1].colour", '"red"', severity="warning"),
    Row(
        "unknown_key",
        chain(outside(errorHandler={"until": 3})),
        "$.nodes[1].errorHandler.until",
        "3",
        severity="warning",
    ),
    Row("bad_field", chain(assign(1, timeout="soon")), "$.nodes[1].timeout", '"soon"'),
    Row("bad_field", chain({"id": "e", "type": "event"}), "$.nodes[1].event_type", "{"),
    Row("bad_field", chain(event(errorHandler={"retryTimes": 11})), "$.nodes[1].errorHandler.retryTimes", "11"),
    Row("bad_field", chain(event(eventFilter=[1])), "$.nodes[1].eventFilter", "["),
    Row("bad_field", chain(event(eventFilter="paid")), "$.nodes[1].eventFilter", '"paid"'),
    Row("bad_field", chain(event(correlation={"a": 1})), "$.nodes[1].correlation", "{"),
    Row("bad_field", {"nodes": {}}, "$.nodes", "{"),
    Row("bad_field", chain(exposeEnv=["*"]), "$.exposeEnv", "["),
    Row("bad_number", chain({"id": "d", "type": "delay", "delaySeconds": -4}), "$.nodes[1].delaySeconds", "-4"),
    Row(
        "bad_number",
        chain(
            {"id": "m", "type": "map", "concurrent": True, "maxConcurrent": 0, "collection": [], "childFlow": chain()}
        ),
        "$.nodes[1].maxConcurrent",
        "0",
    ),
    Row(
        "bad_number",
        chain({"id": "w", "type": "while", "maxIterations": True, "childFlow": chain()}),
        "$.nodes[1].maxIterations",
        "true",
    ),
    Row("bad_type", chain(inputType={"type": "strnig"}), "$.inputType.type", '"strnig"'),
    Row("bad_type", chain(assign(1, outputType={"type": "strnig"})), "$.nodes[1].outputType.type", '"strnig"'),
    Row(
        "branch_missing",
        {
            "nodes": [
                {"id": "s", "type": "start", "next": "i"},
                {"id": "i", "type": "if", "next": "s", "condition": "$INPUT.x"},
            ]
        },
        "$.nodes[1].else_next",
        "{",
        "nodes: s, i",
    ),
    Row("bad_runtime", chain(runtime="lua"), "$.runtime", '"lua"'),
    Row("error_missing", chain({"id": "x", "type": "end", "resultType": "error"}), "$.nodes[1].error", "{"),
    Row("upstream_missing", chain(assign(None, upstreamOutput=[{"value": 1}])), "$.nodes[1].upstreamOutput[0]", "{"),
    Row("not_an_object", {"nodes": [5, *chain()["nodes"]]}, "$.nodes[0]", "5"),
    Row("not_an_object", chain(child([1])), INNER, "["),
    Row("too_deep", chain({"id": "m", "type": "mock", "value": DEEP}), "$.nodes[1].value", "["),
    Row("too_deep", chain(assign(DEEP)), "$.nodes[1].output", "["),
    Row("too_deep", chain(globalContext={"x": DEEP}), "$.globalContext", "{"),
    Row(
        "too_deep",
        chain({"id": "d", "type": "delay", "delaySeconds": 1, "eventFilter": {"x": DEEP}}),
        "$.nodes[1].eventFilter",
        "{",
    ),
    Row(
        "expression_unknown_function",
        chain(assign({"x": ["$F.uper(1)"]})),
        "$.nodes[1].output.x[0]",
        '"$F.uper',
        "'upper'",
    ),
    Row("expression_syntax", chain(child(chain(assign("$INPUT.")))), f"{INNER}.nodes[1].output", '"$INPUT.'),
    Row("expression_unknown_root", chain(assign("$INPTU.x")), "$.nodes[1].output", '"$INPTU', "INPUT"),
    Row("expression_reserved_name", chain(assign("$INPUT.__class__")), "$.nodes[1].output", '"$INPUT'),
    Row(
        "condition_empty_group",
        chain(decide(condition={"relation": "or", "conditions": []})),
        "$.nodes[1].condition",
        "{",
    ),
    Row(
        "condition_incomplete", chain(decide(condition={"field": 1})), "$.nodes[1].condition", "{", '"relation": "and"'
    ),
    Row(
        "branch_without_condition",
        chain({"id": "s", "type": "switch", "branches": [{"next": "end"}, {"next": "end", "isDefault": True}]}),
        "$.nodes[1].branches[0]",
        "{",
        "isDefault",
        "warning",
    ),
    Row("unreachable", {"nodes": [*chain()["nodes"], outside("lost")]}, "$.nodes[2]", "{", severity="warning"),
    Row("unreachable", {"nodes": [*chain()["nodes"], assign(1)]}, "$.nodes[2]", "{", severity="warning"),
    Row(
        "second_start",
        {"nodes": [*chain()["nodes"], {"id": "s2", "type": "start"}]},
        "$.nodes[2]",
        "{",
        severity="warning",
    ),
    Row(
        "no_default",
        chain({"id": "s", "type": "switch", "branches": [{"next": "end", "condition": "$INPUT.x"}]}),
        "$.nodes[1]",
        "{",
        "isDefault",
        "warning",
    ),
    Row(
        "may_not_have_run",
        chain(decide(next="a"), assign(1), output=["$NODE.a"]),
        "$.nodes[3].output",
        "[",
        severity="warning",
    ),
    Row("unknown_node", chain(assign("$NODE.gone")), "$.nodes[1].output", '"$NODE', severity="warning"),
    Row("env_in_state", chain(assign("$ENV.KEY")), "$.nodes[1].output", '"$ENV', "credential", "warning"),
    Row("env_in_state", chain(child(chain(), input={"k": "$ENV.K"})), "$.nodes[1].input", "{", severity="warning"),
    Row("endless_cycle", chain(assign(1, next="b"), assign(2, id="b", next="a")), "$.nodes[1]", "{", "", "warning"),
    Row("expression_literal_root", chain(assign("see $INPUT.x")), "$.nodes[1].output", '"see', "{%", "warning"),
    Row(
        "expression_missing_space",
        chain(assign("$INPUT.a-$INPUT.b")),
        "$.nodes[1].output",
        '"$INPUT',
        "a - b",
        "warning",
    ),
]


def issues_of(text: str) -> tuple[Issue, ...]:
    try:
        return Flow.from_string(text, registry=registry()).issues
    except FlowLoadError as e:
        return e.issues


def name_of(row: Row) -> str:
    return f"{row.code} {row.path}"


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_problem_is_reported_once_at_its_place_in_json(row: Row) -> None:
    text = json.dumps(row.document, indent=1)
    (issue,) = [i for i in issues_of(text) if (i.code, i.path) == (row.code, row.path)]
    assert issue.severity == row.severity
    assert row.hint in issue.hint
    assert issue.line is not None and issue.column is not None
    assert text.splitlines()[issue.line - 1][issue.column - 1 :].startswith(row.at)


@pytest.mark.parametrize("row", [r for r in ROWS if r.code != "too_deep"], ids=name_of)
def test_the_same_problem_is_reported_on_its_line_in_yaml(row: Row) -> None:
    text = yaml.safe_dump(row.document, sort_keys=False, width=1000)
    (issue,) = [i for i in issues_of(text) if (i.code, i.path) == (row.code, row.path)]
    assert issue.line is not None
    if row.at not in ("{", "["):
        assert row.at.strip('"') in text.splitlines()[issue.line - 1]


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_an_error_refuses_the_flow_and_a_warning_does_not_unless_strict(row: Row) -> None:
    text = json.dumps(row.document)
    if row.severity == "warning":
        assert Flow.from_string(text, registry=registry()).issues
        with pytest.raises(FlowLoadError) as refused:
            Flow.from_string(text, registry=registry(), strict=True)
        assert {i.severity for i in refused.value.issues} == {"error"}
    else:
        with pytest.raises(FlowLoadError):
            Flow.from_string(text, registry=registry())


PLACE_OF_CODE = {"Issue": 1, "report": 0}


def test_every_code_of_the_loader_is_tried_above() -> None:
    folders = ("core", "node")
    codes: set[object] = set()
    for path in [p for folder in folders for p in (SRC / folder).rglob("*.py")] + [SRC / "engine" / "linking.py"]:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            place = PLACE_OF_CODE.get(ast.unparse(call.func).rpartition(".")[2]) if isinstance(call, ast.Call) else None
            if isinstance(call, ast.Call) and place is not None and isinstance(code := call.args[place], ast.Constant):
                codes.add(code.value)
    elsewhere = {"empty", "not_text", "not_json", "json_read_as_yaml"}
    elsewhere |= {
        "code_missing",
        "code_syntax",
        "code_without_run",
        "language_unavailable",
        "backend_unavailable",
        "bad_setting",
    }  # test_code_loading
    elsewhere |= {"calculation_missing", "parameter_missing", "unknown_parameter", "unknown_function"}  # test_calculate
    elsewhere |= {"node_invalid", "custom_wait"}  # test_node_contract
    elsewhere |= {"secret_in_flow"}  # test_queue_nodes
    elsewhere |= {"rule"}  # test_rules
    elsewhere |= {"reference_missing", "reference_broken", "reference_recursive", "too_large"}  # test_references
    assert codes - elsewhere <= {row.code for row in ROWS}


def test_all_problems_are_reported_at_once_errors_first() -> None:
    nodes = [
        assign("$F.nope()"),
        outside(timeout="soon"),
        {"id": "w", "type": "whiel"},
        {"id": "d", "type": "delay", "delaySeconds": -1},
    ]
    found = issues_of(json.dumps(chain(*nodes, colour=1)))
    assert {i.code for i in found} == {
        "expression_unknown_function", "bad_field", "unknown_node_type", "bad_number", "unknown_key",
    }  # fmt: skip
    assert [i.severity for i in found] == ["error"] * 4 + ["warning"]


def test_a_node_that_cannot_be_read_does_not_cut_off_the_nodes_behind_it() -> None:
    found = issues_of(json.dumps(chain({"id": "w", "type": "whiel"}, assign(1), event(mode="x", eventType=None))))
    assert {i.code for i in found} == {"unknown_node_type", "bad_field", "unknown_key"}


def test_a_problem_in_a_flow_that_is_written_as_text_points_at_the_text() -> None:
    text = json.dumps(chain(child(json.dumps(chain(assign("$F.nope()"))))), indent=1)
    (issue,) = issues_of(text)
    assert issue.path == f"{INNER}.nodes[1].output"
    assert issue.line is not None and '"childFlow"' in text.splitlines()[issue.line - 1]


GUARDED = (
    "$( $NODE.a or 1 )",
    "$( $NODE.a if $INPUT.x else 1 )",
    "$F.or($NODE.a, 1)",
    {"k": "$F.ifelse(1, $NODE.a, 2)"},
)


@pytest.mark.parametrize("output", GUARDED, ids=str)
def test_a_result_that_an_expression_provides_for_may_be_missing(output: Any) -> None:
    nodes = [decide(next="a"), assign(1)]
    assert issues_of(json.dumps(chain(*nodes, output=output))) == ()
    (issue,) = issues_of(json.dumps(chain(*nodes, output=[output, "$NODE.a"])))
    assert issue.code == "may_not_have_run"


NO_STATE = {
    "a condition": chain(decide(condition="$ENV.X == 'y'"), exposeEnv=["X"]),
    "a field of a custom node": chain(outside(input="$ENV.X"), exposeEnv=["X"]),
}


@pytest.mark.parametrize("document", NO_STATE.values(), ids=list(NO_STATE))
def test_an_environment_value_that_nobody_keeps_is_no_warning(document: dict[str, Any]) -> None:
    assert issues_of(json.dumps(document)) == ()


TURNING = assign(1, id="b", next="a")
LEFT = {
    "a call": chain(outside("a", next="b"), TURNING),
    "a wait": chain(event("a", next="b"), TURNING),
    "an end": chain(decide(id="a", next="b"), TURNING),
    "a call below": chain(child(chain(outside())) | {"id": "a", "next": "b"}, TURNING),
    "a timeout": chain(assign(1, next="b"), TURNING, timeout="PT1S"),
    "a timeout around": chain(child(chain(assign(1, next="b"), TURNING)), timeout=5),
}


@pytest.mark.parametrize("document", LEFT.values(), ids=list(LEFT))
def test_a_cycle_that_something_stops_is_no_warning(document: dict[str, Any]) -> None:
    assert "endless_cycle" not in {i.code for i in issues_of(json.dumps(document))}


def test_a_cycle_around_a_child_that_only_computes_is_endless() -> None:
    document = chain(child(chain(assign(1))) | {"id": "a", "next": "b"}, TURNING)
    assert "endless_cycle" in {i.code for i in issues_of(json.dumps(document))}


def test_ids_may_repeat_on_different_levels() -> None:
    assert issues_of(json.dumps(chain(assign(1), child(chain(assign(2)))))) == ()


def test_free_form_objects_are_not_searched_for_typing_errors() -> None:
    mock = {"id": "m", "type": "mock", "value": {"outptu": 1}}
    assert issues_of(json.dumps(chain(mock, metadata={"verson": 1}, globalContext={"nodess": 1}))) == ()


def test_both_spellings_of_every_field_work_inside_handlers_too() -> None:
    handler = {"strategy": "continue_with", "default_value": 1, "retry_times": 1}
    camel = {"strategy": "continue-with", "defaultValue": 1, "retryTimes": 1}
    assert issues_of(json.dumps(chain(outside(error_handler=handler), outside("b", errorHandler=camel)))) == ()


@pytest.mark.parametrize("text", ["[" * 500 + "]" * 500, "[" * 5000 + "]" * 5000, '{"a":' * 5000 + "1" + "}" * 5000])
@pytest.mark.parametrize(
    "prefix", ['{"nodes": %s}', "nodes: %s", '{"nodes": [{"type": "mock", "id": "m", "value": %s}]}']
)
def test_a_deep_document_is_refused_by_name(text: str, prefix: str) -> None:
    with pytest.raises(FlowLoadError):
        Flow.from_string(prefix % text)


def test_a_document_that_contains_itself_is_refused_by_name() -> None:
    document: dict[str, Any] = {"nodes": []}
    document["nodes"].append(child(document))
    with pytest.raises(FlowLoadError, match="too_deep"):
        Flow.model_validate(document)
    value: list[Any] = []
    value.append(value)
    with pytest.raises(FlowLoadError, match="too_deep"):
        Flow.model_validate(chain(assign(value)))


def test_flows_nest_fifty_deep_and_no_deeper() -> None:
    document = chain()
    for _ in range(49):
        document = chain(child(document))
    assert Flow.from_string(json.dumps(document)).run() is None
    with pytest.raises(FlowLoadError) as refused:
        Flow.from_string(json.dumps(chain(child(document))))
    assert [i.code for i in refused.value.issues] == ["too_deep"]


def test_a_flow_without_anything_in_it_says_what_a_flow_is() -> None:
    with pytest.raises(FlowLoadError, match="nodes"):
        Flow.model_validate({})


def test_the_kind_of_a_load_error_tells_expressions_from_the_rest() -> None:
    for nodes, kind in (
        ([assign("$F.nope()")], "expression_error"),
        ([assign("$F.nope()", next="gone")], "load_error"),
    ):
        with pytest.raises(FlowLoadError) as refused:
            Flow.model_validate(chain(*nodes))
        assert refused.value.kind == kind
