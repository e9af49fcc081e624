"""``calculate``: nested calls of registered functions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from plaita.base.errors import FlowLoadError, InputError, PlaitaError
from plaita.core.flow import Flow
from plaita.node.calculate import FUNCTIONS, Calculate, Call, register_function
from plaita.node.end import End
from plaita.node.registry import NodeRegistry
from plaita.node.start import Start
from tests.support.flows import chain


@pytest.fixture(autouse=True)
def functions() -> Iterator[None]:
    before = dict(FUNCTIONS)
    yield
    FUNCTIONS.clear()
    FUNCTIONS.update(before)


def call(name: str, **params: Any) -> dict[str, Any]:
    return {"function_name": name, "params": params}


ONES = {"left": 1, "right": 1}


def load(expression: Any, **fields: Any) -> Flow:
    node = {"id": "c", "type": "calculate", "expression": expression, **fields}
    return Flow.model_validate(chain(node), registry=NodeRegistry())


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (call("add", left="$INPUT.a", right=2), 12),
        (call("sub", left="$INPUT.a", right=call("multiply", left=2, right="$INPUT.b")), 4),
        (call("div", left=1, right=4), 0.25),
        (call("concat", left="a", right="{% $INPUT.b %}"), "a3"),
        (call("concat", left={"k": "$INPUT.b"}, right=[1]), '{"k": 3}[1]'),
        (call("concat", left="x"), "x"),
        (call("replace", source="banana", which="an", target="-"), "b--a"),
        ({"functionName": "add", "params": {"left": 1, "right": {"functionName": "add", "params": ONES}}}, 3),
    ],
)
def test_calls_are_calculated_inside_out(expression: Any, expected: Any) -> None:
    assert load(expression).run(a=10, b=3) == expected
    assert load(json.dumps(expression)).run(a=10, b=3) == expected


def test_the_documented_model_is_understood_under_both_names() -> None:
    node = Calculate(id="c", next="e", call=Call(function_name="add", params={"left": 1, "right": "$INPUT.n"}))
    flow = Flow(nodes=[Start(id="s", next="c"), node, End(id="e", output="$NODE.c")])
    assert flow.run(n=4) == 5
    document = chain({"id": "c", "type": "calculate", "call": call("add", left=1, right=1)})
    assert Flow.model_validate(document).run() == 2


def test_an_object_that_is_no_call_is_a_value() -> None:
    register_function("keys", lambda of: sorted(of), {"of": {"type": "object"}})
    assert load(call("keys", of={"b": "$INPUT.x", "a": {"params": 1}})).run(x=1) == ["a", "b"]


@pytest.mark.parametrize(
    ("expression", "code", "text"),
    [
        (None, "calculation_missing", "no expression"),
        ("{", "bad_field", "the text is no call"),
        ({"params": {}}, "bad_field", "function_name"),
        (call("ad", left=1, right=1), "unknown_function", "did you mean 'add'?"),
        (call("add", left=call("nope"), right=1), "unknown_function", "there is no function 'nope'"),
        (call("add", left=1, right=1, rigth=2), "unknown_parameter", "did you mean 'right'?"),
        (call("add", left=1), "parameter_missing", "'add' needs the parameter 'right'"),
        (call("add", left="$INPUT.", right=1), "expression_syntax", ""),
        (call("add", left={"function_name": 3}, right=1), "bad_field", "this is no call"),
    ],
)
def test_what_cannot_be_calculated_is_told_at_load(expression: Any, code: str, text: str) -> None:
    with pytest.raises(FlowLoadError) as caught:
        load(expression)
    found = {issue.code: f"{issue.path} {issue.message} {issue.hint}" for issue in caught.value.issues}
    assert code in found, found
    assert text in found[code]


def test_a_node_without_an_expression_is_refused() -> None:
    with pytest.raises(FlowLoadError, match="node 'c' has no expression"):
        Flow.model_validate(chain({"id": "c", "type": "calculate"}))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (call("div", left=1, right="$INPUT.zero"), "div: cannot divide by zero"),
        (call("add", left=1, right="$INPUT.text"), "add: $.right: "),
        (call("add", left=1, right="$INPUT.missing"), "add: $.right: "),
        (call("multiply", left=True, right=1), "multiply: $.left: "),
        (call("fail", of=1), "fail: RuntimeError: not today"),
        (call("odd", of=1), "odd: $: set is not a JSON type"),
        (call("wrong", of=1), "wrong: $: "),
    ],
)
def test_what_fails_is_an_error_that_names_the_function(expression: Any, text: str) -> None:
    def fail(of: Any) -> None:
        raise RuntimeError("not today")

    register_function("fail", fail, {"of": {"type": "any"}})
    register_function("odd", lambda of: {of}, {"of": {"type": "any"}})
    register_function("wrong", lambda of: of, {"of": {"type": "any"}}, {"type": "string"})
    with pytest.raises(PlaitaError) as caught:
        load(expression).run(zero=0, text="2")
    assert caught.value.kind == "node_error"
    assert f"node 'c' (calculate): {text}" in str(caught.value)


def test_a_registered_function_gets_copies() -> None:
    register_function("clear", lambda of: of.clear(), {"of": {"type": "array"}})
    document = chain({"id": "c", "type": "calculate", "expression": call("clear", of="$INPUT.l")}, output="$INPUT.l")
    assert Flow.model_validate(document).run(l=[1, 2]) == [1, 2]


def test_registering_refuses_what_could_not_be_called() -> None:
    async def later(of: Any) -> None: ...

    with pytest.raises(TypeError, match="not a coroutine"):
        register_function("later", later, {})
    with pytest.raises(InputError, match="'numbr' is not a type"):
        register_function("odd", lambda of: of, {"of": {"type": "numbr"}})
