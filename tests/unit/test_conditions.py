"""Conditions and groups: operators, null rules, laziness, what does not load."""

from __future__ import annotations

import json

import pytest

from plaita.base.json import Json
from plaita.engine.conditions import OPERATORS, compile_condition
from plaita.engine.expression import BUILTIN_FUNCTIONS, Compiled, EvaluationError, Names
from tests.spec.frame import Frame

NAMES = Names((frozenset({"m"}),))
INPUT = {"n": 5, "s": "abc", "l": [1, 2], "t": True, "d": {"k": 1}, "z": None}


def compiled(raw: Json) -> Compiled:
    return compile_condition(raw, NAMES, BUILTIN_FUNCTIONS)


def holds(raw: Json) -> Json:
    found = compiled(raw)
    assert found.findings == ()
    return found.run(Frame(input=INPUT))


def single(field: Json, operator: str, value: Json) -> dict[str, Json]:
    return {"field": field, "operator": operator, "value": value}


@pytest.mark.parametrize(
    ("field", "operator", "value", "expected"),
    [
        ("$INPUT.n", "eq", 5, True),
        ("$INPUT.n", "eq", 5.0, True),
        ("$INPUT.n", "eq", "5", False),
        ("$INPUT.t", "eq", 1, False),
        ("$INPUT.n", "ne", 4, True),
        ("$INPUT.n", "gt", 4, True),
        ("$INPUT.n", "gte", "$INPUT.n", True),
        ("$INPUT.n", "lt", 4.5, False),
        ("$INPUT.n", "lte", 5, True),
        ("$INPUT.s", "gt", "abb", True),
        (1, "in", "$INPUT.l", True),
        ("$INPUT.t", "in", "$INPUT.l", False),
        (3, "notIn", [1, "$INPUT.n"], True),
        ("$INPUT.l", "contains", 2, True),
        ("$INPUT.s", "contains", "bc", True),
        ("$INPUT.d", "contains", "k", True),
        ("$INPUT.l", "notContains", 9, True),
        ("$INPUT.l", "truthy", None, True),
        ("$INPUT.z", "truthy", None, False),
        ("$INPUT.z", "falsy", "whatever", True),
        ("{% $INPUT.n %}", "eq", "5", True),
        (["$INPUT.n"], "eq", [5], True),
        ("$INPUT.n > 4", "eq", True, True),
    ],
)
def test_a_condition_compares_its_evaluated_sides(field: Json, operator: str, value: Json, expected: bool) -> None:
    assert holds(single(field, operator, value)) is expected
    assert holds(json.dumps(single(field, operator, value))) is expected


@pytest.mark.parametrize("operator", OPERATORS)
def test_with_a_null_operand_only_equality_can_hold(operator: str) -> None:
    expected = operator in ("ne", "falsy")
    assert holds(single("$INPUT.missing", operator, 1)) is expected
    assert holds(single("$INPUT.missing", operator, [1])) is expected
    if operator not in ("truthy", "falsy"):
        assert holds(single([1], operator, "$INPUT.missing")) is (operator == "ne")
        assert holds(single("$INPUT.z", operator, None)) is (operator == "eq")


@pytest.mark.parametrize(
    ("operator", "left", "right"), [("gt", "a", 1), ("lte", True, 1), ("contains", 5, 1), ("in", 1, "a")]
)
def test_a_type_error_names_the_condition_the_operator_and_the_types(operator: str, left: Json, right: Json) -> None:
    with pytest.raises(EvaluationError) as refused:
        holds(single(left, operator, right))
    assert operator in str(refused.value)
    assert refused.value.text.startswith(f"{str(left).lower()} {operator}")


INCOMPLETE: dict[str, tuple[Json, str]] = {
    "only a field": ({"field": 1}, "no operator and no value"),
    "no value": ({"field": 1, "operator": "eq"}, "has no value"),
    "an operator that is null": ({"field": 1, "operator": None, "value": 1}, "has no operator"),
    "nothing": ({}, "no field and no operator and no value"),
    "a unary one without field": ({"operator": "truthy"}, "has no field"),
    "a list": ([1], "is an object, not list"),
    "text of a list": ("[1]", "is an object, not list"),
    "no relation": ({"conditions": []}, "no relation"),
    "another relation": ({"relation": "xor", "conditions": []}, "'xor'"),
    "no members": ({"relation": "and"}, "no conditions"),
    "members that are no list": ({"relation": "and", "conditions": {}}, "not a list"),
}


@pytest.mark.parametrize(("raw", "words"), INCOMPLETE.values(), ids=list(INCOMPLETE))
def test_an_incomplete_condition_says_what_is_missing_and_shows_the_forms(raw: Json, words: str) -> None:
    (finding,) = compiled(raw).findings
    assert finding.code == "condition_incomplete"
    assert words in finding.message
    assert '{"relation": "and", "conditions": […]}' in finding.hint


FAILING = single(1, "gt", "a")
EMPTY: dict[str, Json] = {"relation": "and", "conditions": []}
YES, NO = single(1, "eq", 1), single(1, "eq", 2)


def test_a_group_stops_at_the_member_that_decides() -> None:
    assert holds({"relation": "and", "conditions": [YES, NO, FAILING]}) is False
    assert holds({"relation": "or", "conditions": [NO, YES, FAILING]}) is True
    assert holds({"relation": "and", "conditions": [NO, FAILING]}) is False
    assert holds({"relation": "or", "conditions": [YES, FAILING]}) is True
    assert holds({"relation": "and", "conditions": [YES]}) is True
    with pytest.raises(EvaluationError):
        holds({"relation": "and", "conditions": [YES, FAILING]})


def test_groups_nest_and_members_may_be_text_or_expressions() -> None:
    inner = {"relation": "or", "conditions": [NO, json.dumps(YES)]}
    assert holds({"relation": "and", "conditions": [inner, "$INPUT.n > 4 and $INPUT.l"]}) is True
    assert holds("$INPUT.z") is False


@pytest.mark.parametrize(
    ("raw", "code", "path"),
    [
        ({"field": 1, "operator": "eq"}, "condition_incomplete", ""),
        ({"operator": "eq", "value": 1}, "condition_incomplete", ""),
        ({"field": 1, "value": 1}, "condition_incomplete", ""),
        ({}, "condition_incomplete", ""),
        (None, "condition_incomplete", ""),
        ([YES], "condition_incomplete", ""),
        ("[1]", "condition_incomplete", ""),
        ("x > 1", "condition_syntax", ""),
        ({"field": 1, "operator": ">=", "value": 1}, "condition_unknown_operator", ""),
        ({"field": 1, "operator": "equals", "value": 1}, "condition_unknown_operator", ""),
        (EMPTY, "condition_empty_group", ""),
        ({"relation": "or", "conditions": [EMPTY]}, "condition_empty_group", ".conditions[0]"),
        ({"relation": "xor", "conditions": [YES]}, "condition_incomplete", ""),
        ({"relation": "and", "conditions": {"a": 1}}, "condition_incomplete", ""),
        ({"conditions": [YES]}, "condition_incomplete", ""),
        (single("$INPT.x", "eq", 1), "expression_unknown_root", ".field"),
        (single(1, "eq", ["$F.uper(1)"]), "expression_unknown_function", ".value[0]"),
    ],
)  # fmt: skip
def test_what_is_incomplete_is_an_error_at_load(raw: Json, code: str, path: str) -> None:
    found = compiled(raw)
    assert [(f.severity, f.code, f.path) for f in found.findings] == [("error", code, path)]
    with pytest.raises(EvaluationError):
        found.run(Frame(input=INPUT))


def test_a_symbol_is_answered_with_the_word() -> None:
    assert compiled(single(1, ">=", 1)).findings[0].hint == "write gte"


def test_groups_nested_without_end_are_refused() -> None:
    raw = YES
    for _ in range(100):
        raw = {"relation": "and", "conditions": [raw]}
    assert [f.code for f in compiled(raw).findings] == ["condition_too_deep"]


def test_a_condition_says_what_it_reads() -> None:
    found = compiled({"relation": "and", "conditions": [single("$NODE.m.x", "eq", "$INPUT.n"), "$ENV.X"]})
    assert found.roots == {"NODE", "INPUT", "ENV"}
    assert found.nodes == ((0, "m"),)
