"""The documented functions: all there, each with what it gives and what it refuses."""

from __future__ import annotations

import pytest

from plaita.base.json import Json
from plaita.core.expression import (
    EvaluationError,
    ExpressionEvaluator,
    ExpressionRegistry,
    FunctionCategory,
    get_default_expression_registry,
)
from plaita.engine.expression import BUILTIN_FUNCTIONS, Names, compile_value
from tests.spec.frame import Frame, RunFacts

DOCUMENTED = """
add sub mul div mod pow abs ceil floor round trunc sqrt
lower upper capitalize title strip lstrip rstrip isDigit replace split join startswith endswith concat
and or not eq ne gt gte lt lte in notIn contains notContains ifelse
len length index slice append addListItem extend insert insertListItem remove reverse sort getListItem pop delListItem
setListItem keys getDictKeys values getDictValues items get getDictValue set setDictValue delete delDictValue clear
clearDict now today json_loads json_dumps
"""


def call(name: str, *arguments: Json, run: RunFacts | None = None) -> Json:
    given = ", ".join(f"$INPUT[{i}]" for i in range(len(arguments)))
    found = compile_value(f"$F.{name}({given})", Names(()), BUILTIN_FUNCTIONS)
    assert found.findings == ()
    before = repr(arguments)
    value = found.run(Frame(input=list(arguments), run=run or RunFacts()))
    assert repr(arguments) == before, "a function changes none of its arguments"
    return value


def test_all_documented_functions_are_there() -> None:
    assert len(DOCUMENTED.split()) == 73
    assert sorted(BUILTIN_FUNCTIONS) == sorted(DOCUMENTED.split())
    assert all(spec.description for spec in BUILTIN_FUNCTIONS.values())


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("add", ([1], [2]), [1, 2]),
        ("sub", (5, 7.5), -2.5),
        ("mul", (3, [0]), [0, 0, 0]),
        ("mul", ("ab", -1), ""),
        ("pow", (2, 10), 1024),
        ("pow", (2, -1), 0.5),
        ("pow", (1, 1_000_000), 1),
        ("pow", (-8, 3.0), -512.0),
        ("abs", (-2.5,), 2.5),
        ("ceil", (1.2,), 2),
        ("floor", (-1.2,), -2),
        ("trunc", (-1.8,), -1),
        ("round", (1234, -2), 1200),
        ("round", (0.5,), 0),
        ("sqrt", (9,), 3.0),
        ("lower", ("ÄB",), "äb"),
        ("capitalize", ("aBC",), "Abc"),
        ("title", ("a bc",), "A Bc"),
        ("strip", (" a ",), "a"),
        ("lstrip", (" a ",), "a "),
        ("rstrip", (" a ",), " a"),
        ("isDigit", ("123",), True),
        ("isDigit", ("",), False),
        ("replace", ("aab", "a", "xx"), "xxxxb"),
        ("replace", ("ab", "", "-"), "-a-b-"),
        ("split", ("a b  c", None), ["a", "b", "c"]),
        ("join", ([], ","), ""),
        ("startswith", ("abc", "ab"), True),
        ("endswith", ("abc", "ab"), False),
        ("concat", (), ""),
        ("not", ([],), True),
        ("gt", ("b", "a"), True),
        ("notIn", (True, [1]), True),
        ("contains", ([1, None], None), True),
        ("notContains", ("abc", "d"), True),
        ("len", ({"a": 1},), 1),
        ("length", ("é",), 1),
        ("index", ("hello", "l"), 2),
        ("index", ([True, 1], 1), 1),
        ("slice", ([1, 2, 3], None, -1), [1, 2]),
        ("append", ([1], [2]), [1, [2]]),
        ("extend", ([1], [2]), [1, 2]),
        ("insert", ([1, 3], 1, 2), [1, 2, 3]),
        ("insertListItem", ([1], -9, 0), [0, 1]),
        ("remove", ([True, 1, 1], 1), [True, 1]),
        ("reverse", ([1, 2],), [2, 1]),
        ("reverse", ("ab",), "ba"),
        ("sort", ([2, 1.5, 3],), [1.5, 2, 3]),
        ("sort", (["b", "a"], None, True), ["b", "a"]),
        ("sort", ([],), []),
        ("getListItem", ([1, 2], -1), 2),
        ("getListItem", ([1, 2], 2), None),
        ("delListItem", ([1, 2, 3], -1), [1, 2]),
        ("setListItem", ([1, 2], -1, 9), [1, 9]),
        ("values", ({"a": 1},), [1]),
        ("get", ({"a": None}, "a", 1), None),
        ("getDictValue", ({}, "a"), None),
        ("setDictValue", ({"a": 1}, "b", 2), {"a": 1, "b": 2}),
        ("delete", ({"a": 1, "b": 2}, "a"), {"b": 2}),
        ("delDictValue", ({}, "a"), {}),
        ("clear", ({"a": 1},), {}),
        ("json_dumps", ("é",), '"\\u00e9"'),
        ("json_loads", ("12345678901234567890123",), 12345678901234567890123),
        ("now", ("%Y%m%d",), "20240229"),
        ("today", ("day %j, 100%%",), "day 060, 100%"),
    ],
)
def test_a_function_gives(name: str, arguments: tuple[Json, ...], expected: Json) -> None:
    assert repr(call(name, *arguments)) == repr(expected)


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("sub", ("a", "b"), "two numbers, not text and text"),
        ("mul", ("a", 1.0), "text and number"),
        ("mul", (True, 2), "boolean and integer"),
        ("div", (1, 0), "divide by zero"),
        ("div", (10**400, 1), "too large"),
        ("mod", (1, 0), "divide by zero"),
        ("pow", (0, -1), "divide by zero"),
        ("pow", (1e300, 2), "too large"),
        ("pow", (10**3999, 2), "digits"),
        ("mul", (10**3999, 10), "4000 digits"),
        ("add", (10**3999, 1.5), "too large"),
        ("abs", (True,), "a number, not boolean"),
        ("round", (1.5, True), "an integer, not boolean"),
        ("round", (1.7e308, -308), "too large"),
        ("sqrt", (-1,), "negative"),
        ("sqrt", (10**700,), "too large"),
        ("upper", (1,), "text, not integer"),
        ("split", ("a", ""), "not empty"),
        ("join", ([1], ","), "item 0 is integer"),
        ("len", (None,), "not null"),
        ("index", ([1], 2), "contains"),
        ("index", ("a", "b"), "contains"),
        ("slice", ([1], 1.0, 2), "an integer, not number"),
        ("append", ("a", 1), "a list, not text"),
        ("remove", ([1], True), "did not find"),
        ("sort", ([1, "a"],), "integer and text"),
        ("sort", ([True, False],), "not boolean"),
        ("sort", ([{"a": 1}, {}], "a"), "integer and null"),
        ("sort", ([{"a": 1}, 5], "a"), "item 1 is integer"),
        ("pop", ([1], 1), "index 1 is out of range"),
        ("setListItem", ([], 0, 1), "out of range"),
        ("get", ([], "a"), "an object, not list"),
        ("set", ({}, 1, 1), "a text as key, not integer"),
        ("json_loads", ("{",), "not JSON"),
        ("json_loads", ('"\\ud800"',), "surrogate"),
        ("json_loads", ("[" * 100_000,), "nested deeper"),
        ("now", ("%9999999Y",), "a format"),
        ("now", ("x" * 201,), "a format"),
        ("now", (1,), "text, not integer"),
    ],
)
def test_a_function_refuses_by_name(name: str, arguments: tuple[Json, ...], reason: str) -> None:
    with pytest.raises(EvaluationError) as refused:
        call(name, *arguments)
    assert reason in refused.value.reason
    assert f"$F.{name} " in refused.value.reason


BIG = "x" * 9_000_000


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("add", (BIG, BIG)),
        ("mul", (BIG, 2)),
        ("mul", ([0], 10**12)),
        ("replace", (BIG, "x", "yy")),
        ("replace", (BIG, "", "y")),
        ("join", ([BIG, BIG], "")),
        ("join", ([""] * 12, "x" * 1_000_000)),
        ("concat", (BIG, BIG)),
        ("json_dumps", ([BIG, BIG],)),
    ],
)
def test_the_size_of_a_result_is_bounded_before_it_is_built(name: str, arguments: tuple[Json, ...]) -> None:
    with pytest.raises(EvaluationError, match="too large"):
        call(name, *arguments)


def test_a_moment_that_no_calendar_has_is_refused() -> None:
    with pytest.raises(EvaluationError, match="as a date"):
        call("now", run=RunFacts(now_ms=10**17))


def test_a_name_is_registered_once_unless_overridden() -> None:
    registry = ExpressionRegistry()
    assert len(registry) == 0
    registry.register("twice", lambda x: x * 2, FunctionCategory.MATH, description="doubled")
    with pytest.raises(ValueError, match="override=True"):
        registry.register("twice", lambda x: x, FunctionCategory.MATH)
    table = registry.table()
    registry.register("twice", lambda x: x, "math", override=True)
    assert table["twice"].call(2) == 4
    assert registry.table()["twice"].call(2) == 2
    assert registry.names(FunctionCategory.MATH) == ["twice"]
    with pytest.raises(ValueError, match="cannot be the name"):
        registry.register("a-b", abs, FunctionCategory.MATH)


def test_the_arguments_a_function_takes_are_checked_at_load() -> None:
    registry = ExpressionRegistry()
    registry.register("pair", lambda a, b=1: [a, b], FunctionCategory.ARRAY)
    for text, count in (("$F.pair()", 1), ("$F.pair(1)", 0), ("$F.pair(1, 2)", 0), ("$F.pair(1, 2, 3)", 1)):
        assert len(compile_value(text, Names(()), registry.table()).findings) == count
    with pytest.raises(TypeError, match="keyword"):
        registry.register("named", lambda *, a: a, FunctionCategory.ARRAY)


def test_a_builtin_can_be_replaced_in_a_registry_of_its_own() -> None:
    registry = ExpressionRegistry.with_builtins()
    registry.register("add", lambda a, b: f"{a}&{b}", FunctionCategory.MATH, override=True)
    assert compile_value("$F.add(1, 2)", Names(()), registry.table()).run(Frame()) == "1&2"
    assert compile_value("$F.add(1, 2)", Names(()), get_default_expression_registry().table()).run(Frame()) == 3


def test_an_evaluator_answers_from_a_plain_context() -> None:
    evaluator = ExpressionEvaluator(get_default_expression_registry())
    context = {"$INPUT": {"x": 1}, "$NODE": {"m": {"v": 2}}, "$MINE": 3, "$PARENT": {"$INPUT": {"y": 4}}}
    given = ["$INPUT.x + $NODE.m.v", "$MINE", "$INPUT.y", "$PARENT.INPUT.y"]
    assert evaluator.evaluate(given, context) == [3, 3, 4, 4]
    with pytest.raises(ValueError, match="uper"):
        evaluator.evaluate("$F.uper('a')", context)
