"""The parser: where and how a syntax error is reported, its limits, and what no text can do."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plaita.base.json import Json
from plaita.engine.expression import (
    BUILTIN_FUNCTIONS,
    EvaluationError,
    ExpressionSyntaxError,
    Names,
    compile_value,
)
from plaita.engine.expression.parser import parse_expression, parse_template
from plaita.engine.expression.syntax import Binary, Literal, Path, Slot, Step
from tests.spec.frame import Frame

NAMES = Names((frozenset(),))


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("$INPUT.a -1", 10, "- needs a space on both sides"),
        ("$INPUT.a*2", 9, "* needs a space on both sides"),
        ("$INPUT.a <$INPUT.b", 10, "< needs a space on both sides"),
        ("$INPUT.a 5", 10, "an operator is missing before '5'"),
        ("$INPUT.a $INPUT.b", 10, "an operator is missing before '$INPUT.b'"),
        ("$INPUT.a and", 13, "the expression ends where a value is expected"),
        ("$INPUT.a and and 1", 14, "and needs a value before it"),
        ("$(1 + 2", 8, "expected ) before the end"),
        ("$(1 + 2))", 9, "unexpected ')'"),
        ("$F.add(1 2)", 10, "an operator is missing before '2'"),
        ("$F.add(, 2)", 8, "unexpected ',' where a value is expected"),
        ("$F.add(1, 2", 12, "expected ) before the end"),
        ("$F.concat('abc)", 11, "the quoted text has no end"),
        ("$([1, 2)", 8, "unexpected ')'"),
        ("$({'a' 1})", 8, "expected : after the key"),
        ("$({'a': 1 'b': 2})", 11, "an operator is missing before \"'b'\""),
        ("$INPUT.a if $INPUT.b", 21, "expected else"),
        ("$INPUT.a else 1", 10, "else without if"),
        ("$INPUT.a not 1", 14, "expected in after not"),
        ("$INPUT.a == 1 == 2", 15, "comparisons do not chain"),
        ("$INPUT.a %} x", 10, "%} outside a template"),
        ("$INPUT[]", 7, 'a step is .name, [0] or ["key"]'),
        ("$INPUT[1.5]", 7, 'a step is .name, [0] or ["key"]'),
        ("$( $INPUT )[x]", 13, 'a step is .name, [0] or ["key"]'),
        ("$INPUT.", 7, 'a step is .name, [0] or ["key"]'),
        ("$(- 1)", 3, "- needs a value before it"),
        ("$(name)", 3, "unknown word 'name'"),
        ('$("\\ud800")', 3, "an escaped surrogate stands alone"),
        ("$(1e999)", 3, "1e999 is too large for a number"),
        ("$(1abc)", 3, "unexpected '1' where a value is expected"),
    ],
)
def test_a_syntax_error_says_where_and_what(text: str, column: int, message: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as refused:
        parse_expression(text)
    assert (refused.value.column, refused.value.message) == (column, message)


def test_columns_of_a_template_count_in_the_whole_text() -> None:
    with pytest.raises(ExpressionSyntaxError) as refused:
        parse_template("ok {% 1 %} then {% $INPUT.a + %}")
    assert refused.value.column == 31


def test_the_expression_parser_finds_the_end_of_a_slot() -> None:
    parts = parse_template("a{% '%}' %}b{%1%}")
    assert parts == ["a", Slot("'%}'", Literal(4, "%}")), "b", Slot("1", Literal(14, 1))]


def test_a_path_keeps_the_text_of_its_numeric_steps() -> None:
    assert parse_expression("$INPUT.00[-1]['7'].a-b") == Path(
        0, "INPUT", (Step("00", 0), Step("-1", -1), Step("7"), Step("a-b"))
    )


def test_tighter_operators_are_below_looser_ones() -> None:
    tree = parse_expression("$A + 1 * 2 == 3 and 4 or 5")
    assert isinstance(tree, Binary)
    spine = []
    while isinstance(tree, Binary):
        spine.append(tree.operator)
        tree = tree.left
    assert spine == ["or", "and", "==", "+"]


def nested(depth: int, opening: str = "(", closing: str = ")") -> str:
    return "$" + "(" + opening * (depth - 1) + "1" + closing * (depth - 1) + ")"


@pytest.mark.parametrize(
    "text",
    [
        nested(61),
        nested(61, "[", "]"),
        nested(61, "{'a': ", "}"),
        nested(61, "$F.abs(", ")"),
        nested(61, "not ", ""),
        "$(" + "1 if 1 else " * 61 + "1)",
        "$(" + "1 + " * 201 + "1)",
        "$(" * 3 + "1 + " * 150 + "1)" + " + 1" * 150 + ")" + ")",
        "$(" + "1" * 4001 + ")",
        "$INPUT." + "a" * 100_000,
    ],
)
def test_what_is_too_deep_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(ExpressionSyntaxError):
        parse_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        nested(60),
        nested(60, "[", "]"),
        nested(60, "$F.abs(", ")"),
        nested(42, "1 or 1 and 1 == 1 + 1 * (", ")"),
        "$(" + "1 + " * 200 + "1)",
        "$(" + "$INPUT.a + " * 199 + "1)",
        "$(" + "$INPUT.a and " * 199 + "1)",
    ],
)
def test_what_is_within_the_limits_parses_and_runs(text: str) -> None:
    found = compile_value(text, NAMES, BUILTIN_FUNCTIONS)
    assert found.findings == ()
    found.run(Frame(input={"a": 1}))


PIECES = st.sampled_from(
    ["$INPUT", "$NODE", "$F.add(", "$F.concat(", "$(", ".a", "[0]", "['k']", "(", ")", "[", "]", "{", "}", ",", ":",
     " + ", " - ", "-", " % ", "%}", "{%", " and ", " not ", " in ", " if ", " else ", "'x'", '"', "'", "\\", "1",
     "1e9", "true", "null", " ", ".", "$", "__x", "\ud800", "\0", "é"]
)  # fmt: skip
TEXTS = st.text() | st.lists(PIECES, max_size=25).map("".join) | st.text(string.printable)


@given(TEXTS)
@example("$" * 50)
@example('$INPUT["' + '"' * 50)
def test_no_text_makes_the_parser_raise_anything_but_its_own_error(text: str) -> None:
    for parse in (parse_expression, parse_template):
        try:
            parse(text)
        except ExpressionSyntaxError as e:
            assert 1 <= e.column <= len(text) + 1


@given(TEXTS, st.sampled_from(["", "$", "$(", "{% "]))
def test_no_field_raises_at_load_and_only_its_own_error_when_it_runs(text: str, before: str) -> None:
    found = compile_value(before + text, Names((frozenset(),), open_roots=True), BUILTIN_FUNCTIONS)
    frame = Frame(input={"a": {"k": [1, "x"]}}, nodes={"a": 1})
    try:
        found.run(frame)
    except EvaluationError as e:
        assert e.reason
    assert frame.input == {"a": {"k": [1, "x"]}}


DATA = st.recursive(TEXTS, lambda v: st.lists(v, max_size=3) | st.dictionaries(TEXTS, v, max_size=3))


@given(DATA)
@example("$F.div(1, 0)")
@example("{% $F.div(1, 0) %}")
def test_data_is_never_evaluated(data: Json) -> None:
    frame = Frame(input={"d": data, "l": [data]}, nodes={"n": data})
    given = ["$INPUT.d", "$INPUT.l[0]", "$NODE.n", "$INPUT.d if true else 1", "$F.get($INPUT, 'd')"]
    names = Names((frozenset({"n"}),))
    found = compile_value(given, names, BUILTIN_FUNCTIONS)
    assert found.run(frame) == [data] * 5
    if isinstance(data, str):
        template = compile_value("a {% $INPUT.d %} b {% $NODE.n %}", names, BUILTIN_FUNCTIONS)
        assert template.run(frame) == f"a {data} b {data}"
