"""Types, conditions and registries as objects and functions of a program."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError as FieldError

from plaita import io
from plaita.base.errors import FlowLoadError, InputError, NodeExecutionError, NotSupported
from plaita.core import types
from plaita.core.context import ExecutionContext
from plaita.core.errors import FlowStartMissingError
from plaita.core.expression import EvaluationError, ExpressionRegistry
from plaita.core.flow import Flow
from plaita.node.assignment import Assignment, AssignmentError
from plaita.node.basic import Node
from plaita.node.calculate import FUNCTIONS, register_function
from plaita.node.decide import Bool, Condition, ConditionGroup, Logic, Switch, condition_from_json
from plaita.node.loop import Loop
from plaita.node.process_registry import node_register, nodes, parse_node
from plaita.node.registry import get_default_registry
from tests.support.flows import chain

ORDER = {"type": "object", "properties": {"id": {"type": "integer", "title": "Number"}}, "required": ["id"]}


class Bell(Node):
    node_type: ClassVar[str] = "bell"

    def execute(self, execution: Any) -> str:
        return "ding"


def test_a_property_reads_every_documented_spelling() -> None:
    found = io.Property.from_json(ORDER)
    assert found is not None and isinstance(found.children, dict)
    assert (found.data_type, found.children["id"].label, found.children["id"].is_required) == ("object", "Number", True)
    assert io.Property.from_json('{"type": "array", "items": {"dataType": "string"}}') == io.Property.model_validate(
        {"type": "array", "itemType": {"data_type": "string"}}
    )
    assert io.Property.from_json(None) is None
    with pytest.raises(InputError, match="'txet' is not a type"):
        io.Property.from_json({"type": "txet"})


@pytest.mark.parametrize("document", [
    ORDER,
    {"type": "array", "children": [{"type": "string"}, {"type": "integer", "default": 0}]},
    {"type": "boolean", "default": False, "name": "ok", "desc": "d"},
])  # fmt: skip
def test_a_property_stands_for_the_document_it_was_read_from(document: dict[str, Any]) -> None:
    found = io.Property.from_json(document)
    assert found is not None
    assert io.Property.from_json(found.document()) == found
    assert io.Property.from_json(found) == found


def test_a_property_may_stand_where_a_flow_or_a_node_takes_a_type() -> None:
    number = io.Property(data_type="integer", is_required=True)
    given = io.Property(data_type="object", children={"n": number})
    double = Assignment(id="d", output="$F.mul($INPUT.n, 2)", output_type=number, next="end")
    ends: list[Any] = [{"id": "start", "type": "start", "next": "d"}, double, {"id": "end", "type": "end"}]
    flow = Flow(flow_id="f", input_type=given, nodes=[*ends[:2], {**ends[2], "output": "$NODE.d"}])
    assert flow.run(n=2) == 4
    with pytest.raises(InputError, match="must be an integer"):
        flow.run(n="2")
    with pytest.raises(NodeExecutionError):
        Flow.model_validate({"nodes": [ends[0], {"id": "d", "type": "assignment", "output": "x", "next": "end",
                                                 "output_type": number}, ends[2]]}).run()  # fmt: skip


def test_a_property_types_a_registered_function() -> None:
    register_function("halve", lambda n: n / 2, {"n": io.Property(data_type="number", is_required=True)})
    try:
        node = {"id": "c", "type": "calculate", "expression": {"function_name": "halve", "params": {"n": 3}}}
        assert Flow.model_validate(chain(node)).run() == 1.5
    finally:
        del FUNCTIONS["halve"]


@pytest.mark.parametrize(("declared", "value", "fits"), [
    ({"type": "string"}, "", True),
    ({"type": "integer"}, True, False),
    ({"type": "integer"}, None, True),
    ({"type": "integer", "required": True}, None, False),
    (ORDER, {"id": 1}, True),
    (ORDER, {}, False),
    ({"type": "string"}, object(), False),
])  # fmt: skip
def test_match_says_whether_a_value_fits(declared: dict[str, Any], value: Any, fits: bool) -> None:
    assert io.match(declared, value) is fits
    found = io.Property.from_json(declared)
    assert found is not None
    assert io.match(found, value) is fits


def test_expressions_are_evaluated_in_a_documented_context() -> None:
    context = {"$INPUT": {"a": 3}, "$NODE": {"n": [1, 2]}}
    assert io.evaluate({"x": ["$INPUT.a", "{% $NODE.n[1] %}"]}, context) == {"x": [3, "2"]}
    assert io.parse_function("$F.add($INPUT.a, 2)", context) == 5
    assert io.parse_function("$INPUT.a", context) == "$INPUT.a"
    with pytest.raises(NotSupported):
        io.evaluate("#INPUT.a", context, prefix="#")
    with pytest.raises(FlowLoadError):
        io.evaluate("$F.add(1, 2)", context, registry=ExpressionRegistry())


def test_a_registered_function_is_known_by_name_and_to_flows() -> None:
    io.register_function("shout", lambda text: f"{text}!")
    try:
        assert io.REGISTERED_FUNCTIONS["shout"]("hey") == "hey!"
        assert io.REGISTERED_FUNCTIONS["ifelse"](True, 1, 2) == 1
        assert Flow.model_validate(chain(output="$F.shout($INPUT.x)")).run(x="ho") == "ho!"
        assert {"shout", "add"} <= set(io.REGISTERED_FUNCTIONS) and "nobody" not in io.REGISTERED_FUNCTIONS
        assert len(io.REGISTERED_FUNCTIONS) == 74
    finally:
        io.get_default_expression_registry().unregister("shout")


@pytest.mark.parametrize(("data_type", "value", "validators", "refused"), [
    ("string", "abc", None, ""),
    ("string", 1, None, "must be of type string, not 1"),
    ("integer", True, None, "must be of type integer"),
    ("integer", "5", None, "must be of type integer"),
    ("decimal", Decimal("1.5"), None, ""),
    ("number", 2, None, ""),
    ("date", "2024-02-29", None, ""),
    ("date", "2023-02-29", None, "must be of type date"),
    ("any", None, None, ""),
    ("string", None, None, "must be of type string"),
    ("any", None, ["required"], "a value is required"),
    ("string", "abc", [{"name": "max_length", "length": 2}], "may have at most 2 characters"),
    ("string", "abc", [{"name": "max_length", "length": 3}], ""),
    ("integer", 5, [{"name": "min", "min_value": 6}], "must not be less than 6"),
    ("integer", 5, [{"name": "max", "max_value": 4}], "must not be more than 4"),
])  # fmt: skip
def test_valid_checks_type_and_validators(data_type: str, value: Any, validators: Any, refused: str) -> None:
    if not refused:
        types.valid(data_type, value, validators)
        return
    with pytest.raises(types.ValidationError, match=refused):
        types.valid(data_type, value, validators)


def test_unknown_types_and_validators_are_told_apart_from_bad_values() -> None:
    with pytest.raises(ValueError, match=r"'strng' is not a type.*string"):
        types.valid("strng", "a")
    with pytest.raises(ValueError, match="there is no validator 'requird'"):
        types.valid("string", "a", ["requird"])
    with pytest.raises(ValueError, match="'any' has no Python type"):
        types.get_native_type("any")
    assert types.get_native_type("number") == "float"
    assert types.get_native_type("array", str_value=False) is list


def test_a_validator_of_ones_own_is_asked() -> None:
    types.register_validator("even", lambda value: value % 2 == 0)
    try:
        types.valid("integer", 2, ["even"])
        with pytest.raises(types.ValidationError, match="3 is refused by the validator 'even'"):
            types.valid("integer", 3, ["even"])
    finally:
        del types.data_validators["even"]


def test_a_condition_holds_in_a_context_or_does_not() -> None:
    condition = Condition(field="$INPUT.n", operator="gt", value=1)
    group = ConditionGroup(relation="and", conditions=[condition, {"field": 1, "operator": "eq", "value": 1}])
    context = ExecutionContext()
    context.set_state("INPUT", {"n": 2})
    assert condition.match({"$INPUT": {"n": 2}}) and group.match(context)
    assert not condition.match({"$INPUT": {"n": 1}})
    with pytest.raises(EvaluationError):
        Condition(field="$INPUT.(", operator="eq", value=1).match(context)


def test_conditions_are_read_from_documents_and_text() -> None:
    text = '{"relation": "or", "conditions": [{"field": "$INPUT.a", "operator": "eq", "value": 1}]}'
    found = condition_from_json(text)
    assert isinstance(found, ConditionGroup)
    assert found.conditions == [Condition(field="$INPUT.a", operator="eq", value=1)]
    assert condition_from_json(found) is found
    assert [condition_from_json(c) for c in (None, "", "no JSON", {"field": "$INPUT.a"})] == [None] * 4
    with pytest.raises(FieldError):
        Condition(field=1, operator="==", value=1)


def test_a_condition_object_may_stand_where_a_node_takes_one() -> None:
    big = Condition(field="$INPUT.n", operator="gt", value=1)
    either = Bool(id="c", condition=ConditionGroup(relation="and", conditions=[big]), next="big", else_next="small")
    ends = [{"id": name, "type": "end", "output": name} for name in ("big", "small")]
    flow = Flow(nodes=[{"id": "start", "type": "start", "next": "c"}, either, *ends])
    assert (flow.run(n=2), flow.run(n=1)) == ("big", "small")
    rounds = Loop(id="l", collection=[1, 2, 3], condition=Condition(field="$LOOP-ITEM", operator="lt", value=2),
                  child_flow=chain(output="$INPUT.item"), next="big")  # fmt: skip
    assert (
        Flow(nodes=[{"id": "start", "type": "start", "next": "l"}, rounds, {**ends[0], "output": "$NODE.l"}]).run() == 2
    )


def test_a_switch_has_two_names_and_one_class() -> None:
    assert Logic is Switch


def test_an_assignment_without_a_fitting_upstream_has_its_error_as_cause() -> None:
    node = {"id": "a", "type": "assignment", "upstreamOutput": [
        {"upstream": "x", "value": 1}, {"upstream": "y", "value": 2},
    ]}  # fmt: skip
    with pytest.raises(NodeExecutionError) as caught:
        Flow.model_validate(chain(node, {"id": "x", "type": "mock"}, {"id": "y", "type": "mock"})).run()
    assert isinstance(caught.value.__cause__, AssignmentError)


def test_the_process_registry_answers_to_its_older_names() -> None:
    with pytest.warns(DeprecationWarning, match="get_default_registry"):
        node_register(Bell)
    try:
        assert nodes["bell"] is Bell and "bell" in nodes and len(nodes) == len(get_default_registry())
        with pytest.warns(DeprecationWarning, match="get_default_registry"):
            assert isinstance(parse_node({"id": "b", "type": "bell"}), Bell)
    finally:
        del nodes["bell"]
    assert "bell" not in nodes and "bell" not in set(nodes)
    with pytest.raises(KeyError):
        del nodes["bell"]
    with pytest.raises(ValueError, match="is of type 'bell'"):
        nodes["gong"] = Bell


def test_errors_take_their_documented_arguments() -> None:
    error = NodeExecutionError("it broke", "n1")
    assert (error.message, error.node, error.code, error.error_type) == ("it broke", "n1", -520, "node_error")
    assert FlowStartMissingError().code == -500
