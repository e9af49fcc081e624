"""Keys and expressions that reach for what is behind the values: there is nothing but JSON."""

from __future__ import annotations

import itertools
import json
import types
from typing import Any

import pytest

from plaita.base.errors import PlaitaError
from plaita.core.expression import ExpressionEvaluator
from plaita.core.flow import Flow
from plaita.engine.expression import BUILTIN_FUNCTIONS
from tests.support.flows import chain

OBJECTS: tuple[Any, ...] = (
    object, str, list, dict, int, float, type, type(None), types.FunctionType, types.CodeType, types.FrameType,
    types.ModuleType, types.GeneratorType, types.MethodType, BaseException,
)  # fmt: skip
NAMES = sorted({name for cls in OBJECTS for name in dir(cls)} | {"constructor", "__proto__", "prototype", "os", "sys"})
SHAPES = (
    "$INPUT.{0}",
    "$INPUT.u.{0}",
    "$INPUT.text.{0}",
    "$INPUT.list.{0}",
    '$INPUT["{0}"]',
    "$NODE.m.{0}.{0}",
    "$GLOBAL.{0}",
    "$INPUT.list[0].{0}",
    "$( $INPUT.{0}() )",
    "$F.{0}($INPUT)",
    "$F.get($INPUT, '{0}')",
    "$F.concat('{{0.{0}}}', $INPUT)",
    "{{% $INPUT.text.{0} %}}",
    "{{% '{{0.{0}}}' %}}",
)
EXPRESSIONS = [shape.format(name) for name in NAMES for shape in SHAPES]
CONTEXT: dict[str, Any] = {"$INPUT": {"u": {"k": 1}, "text": "t", "list": [1]}, "$NODE": {"m": {"k": 2}}}
CHUNKS = 8


def what(text: str) -> Any:
    """The value of an expression, ``None`` when it is refused by name."""
    try:
        return ExpressionEvaluator().evaluate(text, CONTEXT)
    except PlaitaError:
        return None


def test_there_are_thousands() -> None:
    assert len(EXPRESSIONS) > 3_000


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_expression_reaches_an_attribute(chunk: int) -> None:
    plain = {None, "", "t", 1}
    for text in EXPRESSIONS[chunk::CHUNKS]:
        found = what(text)
        assert json.loads(json.dumps(found)) == found, text
        told = found if isinstance(found, str) else ""
        assert "<" not in told and "object at" not in told, text
        if text.startswith("$INPUT") or text.startswith("$NODE"):
            assert found in plain, text


@pytest.mark.parametrize("key", [*NAMES, "$INPUT", "{% $INPUT %}", "a.b", "", "\x00", "$F.now()", "__class__.__init__"])
def test_hostile_keys_are_keys(key: str) -> None:
    flow = Flow.model_validate(chain({"id": "a", "type": "assignment", "output": "$INPUT"}))
    assert flow.run({key: {key: "$F.upper('x')"}}) == {key: {key: "$F.upper('x')"}}


VALUES = (
    "null",
    "true",
    "0",
    "-1",
    "99999999999999999999999",
    "1.5",
    "1e308",
    "''",
    "'ab'",
    "[]",
    "[1, 'a']",
    "{'a': 1}",
)


@pytest.mark.parametrize("name", BUILTIN_FUNCTIONS)
def test_a_function_gives_json_or_refuses_by_name_whatever_it_gets(name: str) -> None:
    for count in (1, 2, 3):
        for given in itertools.product(VALUES if count < 3 else VALUES[2:9:2], repeat=count):
            json.dumps(what(f"$F.{name}({', '.join(given)})"))
