"""Flows put together node by node."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from plaita import Flow, dsl
from plaita.core.text import read_document
from plaita.dsl import (
    FlowBuilder,
    FlowIRValidationError,
    approval,
    assignment,
    branch,
    build,
    build_flow,
    case,
    child,
    child_flow,
    code,
    cond,
    cond_group,
    delay,
    end,
    error_handler,
    event,
    filter,
    find,
    forbid_node_types_in_childflow,
    http,
    if_,
    linear,
    loop,
    map,
    node,
    parallel,
    parallel_branch,
    reduce,
    reference,
    start,
    switch,
    validate_flow_ir,
    while_,
)


@child_flow(input_type={"dataType": "object"})
def double(b: FlowBuilder) -> None:
    b.add(start(next="e")).add(end("e", output="$INPUT.item * 2"))


def priced() -> FlowBuilder:
    with build("price", version="3", global_context={"tax": 1.25}) as b:
        b.add(start(next="net"))
        b.add(assignment("net", "$INPUT.gross / $GLOBAL.tax", next="big"))
        b.add(if_("big", cond("$NODE.net", ">", 100), then="much", else_="little"))
        b.add(end("much", output="much"))
        b.add(end("little", output="$NODE.net"))
    return b


def test_a_built_flow_runs_in_both_ways() -> None:
    assert priced().run(gross=25) == 20.0
    assert asyncio.run(priced().arun({"gross": 500})) == "much"


def test_a_document_goes_through_a_builder_unchanged() -> None:
    document = {**priced().to_dict(), "exposeEnv": ["HOME"], "anything": {"kept": True}}
    assert FlowBuilder.from_dict(document).to_dict() == document


def test_the_texts_of_a_builder_are_read_as_the_same_document() -> None:
    assert json.loads(priced().to_json()) == priced().to_dict()
    assert read_document(priced().to_yaml(), "yaml").value == priced().to_dict()


def test_nodes_are_changed_in_the_spelling_they_have() -> None:
    b = FlowBuilder.from_dict({"nodes": [{"id": "i", "type": "if", "elseNext": "a", "next": "b"}]})
    assert b.reroute("i", else_next="c").update_node("i", desc="d").to_dict()["nodes"] == [
        {"id": "i", "type": "if", "elseNext": "c", "next": "b", "desc": "d"}
    ]


@pytest.mark.parametrize("change", [FlowBuilder.remove_node, FlowBuilder.update_node, FlowBuilder.reroute])
def test_a_node_that_is_not_there_is_a_key_error_with_a_suggestion(change: Any) -> None:
    with pytest.raises(KeyError, match="no node 'muck'") as caught:
        change(priced(), "muck")
    assert "much" in caught.value.hint  # type: ignore[attr-defined]


def test_a_removed_node_is_gone() -> None:
    with pytest.raises(FlowIRValidationError, match="'much', which is not a node"):
        priced().remove_node("much").validate()


def test_what_is_wrong_is_told_whole() -> None:
    with pytest.raises(FlowIRValidationError) as caught:
        build().add(start(next="a")).add(assignment("a", "$NOPE.x", next="b")).add(end("c")).build()
    assert len(caught.value.issues) >= 2


def test_rules_of_an_installation_are_asked() -> None:
    rules = [forbid_node_types_in_childflow({"http"})]
    inner = build().add(start(next="h")).add(http("h", "GET", "https://example.org", next="e")).add(end("e"))
    document = build("f").add(start(next="m")).add(map("m", [1], inner, next="end")).add(end()).to_dict()
    validate_flow_ir(document)
    with pytest.raises(FlowIRValidationError, match="not allowed in sub-flows"):
        build_flow(document, rules=rules)


def test_every_factory_makes_what_the_loader_accepts() -> None:
    tests = cond_group("or", [cond("$INPUT.a", "not in", [1]), cond("$INPUT.a", "truthy")])
    nodes = [
        start(next="a"), assignment("a", None, next="l"), loop("l", [1], double, next="m", condition=tests),
        map("m", "$INPUT.l", double, next="fi", concurrent=True, max_concurrent=3),
        filter("fi", [1], double, next="fd"),
        find("fd", [1], double, next="r"), reduce("r", [1], double, next="w", initial=0),
        while_("w", cond("$LOOP-INDEX", "<", 2), double, next="c", max_iterations=5),
        child("c", {"item": 1}, double, next="ref"), reference("ref", {"a": 1}, "other", next="p"),
        parallel("p", [parallel_branch("x", double, {"item": 2}, tests)], next="code", is_conditional=True),
        code("code", "python", "def run(input):\n    return 1", {"a": 1}, next="http"),
        http("http", "GET", "u", next="ev", error_handler=error_handler("continue-with", 2, 5, 7, "m")),
        event("ev", "paid", {"a": 1}, next="d"), delay("d", 3, next="ap"), approval("ap", "Pay?", ["ann"], next="mo"),
        dsl.mock("mo", {"k": "$x"}, next="redis"), node("redis_queue", "redis", queue_name="q", next="s"),
        switch("s", [branch("big", "case", tests, 2), branch("other", "end", is_default=True)]),
        case("case", "$INPUT.a", [{"id": "end", "value": 1}], "end"), end(),
    ]  # fmt: skip
    b = build("every")
    for each in nodes:
        b.add(each)
    flow = b.build()
    assert not [issue for issue in flow.issues if "unknown" in issue.code]
    handler = flow.find_node_by_id("http").error_handler  # type: ignore[union-attr]
    assert (handler.retry_times, handler.default_value, handler.error_code, handler.error_message) == (2, 5, 7, "m")
    assert flow.find_node_by_id("m").max_concurrent == 3  # type: ignore[union-attr]


def test_a_linear_flow_chains_itself_and_begins_with_a_start() -> None:
    built = linear("f").assignment("$INPUT.a + 1").map([1, 2], double, id="m").end(output=["$NODE._n1", "$NODE.m"])
    assert [n["id"] for n in built.to_dict()["nodes"]] == ["start", "_n1", "m", "_n2"]
    assert built.run(a=1) == [2, [2, 4]]


def test_a_linear_flow_may_branch() -> None:
    built = linear("f").if_(cond("$INPUT.a", "==", 1), then="one", else_="two")
    built.assignment(1, id="one", next="end").assignment(2, id="two").end("end", "$NODE.one")
    assert [built.run(a=a) for a in (1, 2)] == [1, None]


def test_a_builder_is_a_flow_like_any_other() -> None:
    assert isinstance(priced().build(), Flow)
    assert priced().flow_id == "price"
