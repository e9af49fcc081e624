"""Documents to Python and back: the flow behaves the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from plaita import Flow, FlowCallback, FlowExecution
from plaita.core.errors import FlowExecutionException
from plaita.dsl.codeflow import EmitError, compile_source, emit_source, to_canonical
from plaita.testing.simulation.random_flows import generate as generate_wild
from tests.diff.common_flows import INPUT, generate
from tests.diff.programs import PROGRAMS
from tests.diff.test_codeflow import source_of

CHUNK = 25
WAITING = ("event", "delay", "approval")


class Order(FlowCallback):
    """The ids of nodes as they run."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def on_node_start(self, flow: Any, node: Any, **kwargs: Any) -> None:
        self.ids.append(node.id)


def played(document: dict[str, Any], value: dict[str, Any]) -> tuple[Any, list[str]]:
    """The result or the error, and the order of the nodes."""
    order = Order()
    try:
        flow = Flow.model_validate(document)
        return FlowExecution(callback_handlers=[order]).execute(flow, value), order.ids
    except FlowExecutionException as e:
        return (type(e).__name__, e.code), order.ids


def levels(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield document
    for node in document["nodes"]:
        for flow in [node.get("childFlow"), *(b.get("flow") for b in node.get("branches", ()))]:
            if flow:
                yield from levels(flow)


def tame(document: dict[str, Any]) -> dict[str, Any]:
    """A random flow that ends in one process: what waits and what acts outside is an assignment."""
    found: dict[str, Any] = json.loads(json.dumps(document))
    for level in levels(found):
        for node in level["nodes"]:
            if node["type"] == "start":
                node["id"] = "start"
            if node["type"] in (*WAITING, "outside"):
                kept = {key: node[key] for key in ("id", "next") if key in node}
                node.clear()
                node.update(kept, type="assignment", output="done")
    return json.loads(json.dumps(found).replace("$seen", "$BRANCH"))  # type: ignore[no-any-return]


@pytest.mark.parametrize("first", range(0, 150, CHUNK))
def test_a_flow_that_went_through_python_behaves_the_same(first: int) -> None:
    for seed in range(first, first + CHUNK):
        document = json.loads(json.dumps(generate(seed)).replace('"s"', '"start"'))
        source = emit_source(document)
        assert played(compile_source(source), INPUT) == played(document, INPUT), source


@pytest.mark.parametrize("first", range(0, 100, CHUNK))
def test_wild_flows_come_back_the_same_or_are_refused_for_their_cycles(first: int) -> None:
    said = 0
    for seed in range(first, first + CHUNK):
        made = generate_wild(seed)
        document = tame(made.flow)
        try:
            source = emit_source(document)
        except EmitError as e:
            assert "leads back to" in str(e)
            continue
        said += 1
        if not made.reads_outside:
            assert played(compile_source(source), made.value) == played(document, made.value), source
    assert said


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_source_is_said_again_and_stays_itself(name: str) -> None:
    document = compile_source(source_of(PROGRAMS[name]))
    source = emit_source(document)
    again = compile_source(source)
    assert shape(again) == shape(document)
    assert emit_source(again) == source


def shape(document: dict[str, Any]) -> dict[str, Any]:
    """A document without its lines; its nodes by id."""
    found = json.loads(json.dumps(to_canonical(document)))
    for level in levels(found):
        for node in level["nodes"]:
            node.pop("source_line", None)
    return found  # type: ignore[no-any-return]


def test_the_source_reads_as_somebody_would_write_it() -> None:
    source = emit_source(
        {
            "flow_id": "order",
            "nodes": [
                {"id": "start", "type": "start", "next": "net"},
                {"id": "net", "type": "assignment", "output": "$( $INPUT.gross / 1.25 )", "next": "if_net_gt_100"},
                {
                    "id": "if_net_gt_100", "type": "if", "next": "big", "elseNext": "return_net",
                    "condition": {"field": "$NODE.net", "operator": "gt", "value": 100},
                },
                {"id": "big", "type": "end", "output": "{% $NODE.net %} is much"},
                {"id": "return_net", "type": "end", "output": "$NODE.net"},
            ],
        }
    )  # fmt: skip
    assert source == (
        "from plaita.dsl.codeflow import INPUT, end, flow\n\n\n"
        '@flow("order")\ndef order():\n'
        "    net = INPUT.gross / 1.25\n"
        "    if net > 100:\n"
        '        end("{% $NODE.net %} is much", id="big")\n'
        "    return net\n"
    )


def test_ways_that_cross_are_refused() -> None:
    def fork(node_id: str, then: str, otherwise: str) -> dict[str, Any]:
        condition = {"field": "$INPUT.a", "operator": "truthy", "value": True}
        return {"id": node_id, "type": "if", "condition": condition, "next": then, "elseNext": otherwise}

    nodes = [
        {"id": "start", "type": "start", "next": "a"}, fork("a", "b", "c"), fork("b", "d", "e"),
        fork("c", "d", "e"), {"id": "d", "type": "assignment", "output": 1, "next": "f"},
        {"id": "e", "type": "assignment", "output": 2, "next": "f"}, {"id": "f", "type": "end"},
    ]  # fmt: skip
    with pytest.raises(EmitError, match="ways cross at node"):
        emit_source({"nodes": nodes})
