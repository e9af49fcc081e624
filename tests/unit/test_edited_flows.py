"""A flow whose objects are assigned to after it was made runs as it is then, and is stored so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from plaita import Flow, Runtime
from plaita.base.errors import FlowLoadError
from plaita.core.closure import close_over, open_closure
from plaita.node.assignment import Assignment
from plaita.node.start import Start
from tests.support.flows import chain

ROOT = Path(__file__).parents[2]


def adding(node_id: str, output: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "assignment", "output": output}


def found(flow: Flow, node_id: str) -> Any:
    node = flow.find_node_by_id(node_id)
    assert node is not None
    return node


def test_an_assigned_field_of_a_node_counts_at_the_next_run() -> None:
    flow = Flow.model_validate(chain(adding("a", 1)))
    assert flow.run() == 1
    found(flow, "a").output = "$INPUT.x"
    assert flow.run(x=5) == 5


def test_assigned_nodes_replace_those_of_the_document() -> None:
    flow = Flow.model_validate(chain(adding("a", 1)))
    flow.nodes = [Start(id="s", next="a"), Assignment(id="a", output=2, next="e"), {"id": "e", "type": "end"}]
    found(flow, "e").output = "$NODE.a"
    assert flow.run() == 2


def test_nodes_added_to_the_list_count() -> None:
    flow = Flow.model_validate(chain(adding("a", 1)))
    flow.run()
    flow.nodes.append({"id": "b", "type": "assignment", "output": 7, "next": "end"})
    found(flow, "a").next = "b"
    found(flow, "end").output = "$NODE.b"
    assert flow.run() == 7


def test_an_edit_inside_a_sub_flow_counts() -> None:
    flow = Flow.model_validate(chain({"id": "c", "type": "child", "childFlow": chain(adding("a", 1))}))
    assert flow.run() == 1
    found(found(flow, "c").child_flow, "a").output = 2
    assert flow.run() == 2


def test_an_assigned_sub_flow_counts() -> None:
    flow = Flow.model_validate(chain({"id": "c", "type": "child", "childFlow": chain(adding("a", 1))}))
    flow.run()
    found(flow, "c").child_flow = chain(adding("a", 3))
    assert flow.run() == 3


def test_a_wrong_edit_is_refused_when_it_is_made_or_at_the_next_run() -> None:
    flow = Flow.model_validate(chain(adding("a", 1)))
    with pytest.raises(ValidationError, match="24 hours"):
        found(flow, "a").timeout = "P2D"
    found(flow, "a").next = "nowhere"
    with pytest.raises(FlowLoadError, match="'nowhere'"):
        flow.run()


def test_what_is_stored_of_an_edited_flow_is_the_edited_flow() -> None:
    flow = Flow.model_validate(chain(adding("a", 1), flow_id="f"))
    found(flow, "a").output = 4
    with Runtime.open("memory:") as runtime:
        assert runtime.start(flow).wait()["output"] == 4


def of_objects() -> Flow:
    sub = Flow(nodes=[Start(id="s", next="a"), Assignment(id="a", output=[1], next="e"), {"id": "e", "type": "end"}])
    child = {"id": "c", "type": "child", "childFlow": sub, "next": "e"}
    nodes = [Start(id="s", next="c"), child, {"id": "e", "type": "end", "output": "$NODE.c"}]
    return Flow(flow_id="f", nodes=nodes, global_context={"rate": 1})


def add_to_a_sub_flow(flow: Flow) -> None:
    found(flow, "c").child_flow.nodes.append(Assignment(id="b", output=1, next="e"))


def change_a_value_of_a_node(flow: Flow) -> None:
    found(found(flow, "c").child_flow, "a").output.append(2)


def change_a_global_value(flow: Flow) -> None:
    assert flow.global_context is not None
    flow.global_context["rate"] = True


def assign_a_header(flow: Flow) -> None:
    flow.version = "2"


def assign_a_field_of_a_sub_flow(flow: Flow) -> None:
    found(found(flow, "c").child_flow, "a").output = 3


CHANGES = [
    add_to_a_sub_flow, change_a_value_of_a_node, change_a_global_value, assign_a_header, assign_a_field_of_a_sub_flow,
]  # fmt: skip


@pytest.mark.parametrize(
    "flow", [of_objects(), Flow.model_validate(chain(adding("a", 1)))], ids=["objects", "document"]
)
def test_the_closure_of_a_flow_is_made_once(flow: Flow) -> None:
    assert close_over(flow)[1] is close_over(flow)[1]


@pytest.mark.parametrize("change", CHANGES)
def test_the_closure_follows_every_change_also_one_in_place(change: Callable[[Flow], None]) -> None:
    flow = of_objects()
    before, _ = close_over(flow)
    change(flow)
    after, document = close_over(flow)
    assert after != before
    assert close_over(open_closure(document))[1] == document


def add_to_the_child(flow: Flow) -> None:
    found(flow, "c").child_flow.nodes.insert(1, Assignment(id="b", output=1, next="a"))


def replace_in_the_child(flow: Flow) -> None:
    found(flow, "c").child_flow.nodes[1] = Assignment(id="a", output=2, next="end")


@pytest.mark.parametrize("change", [add_to_the_child, replace_in_the_child])
def test_nodes_put_into_the_list_of_a_sub_flow_count(change: Callable[[Flow], None]) -> None:
    flow = Flow.model_validate(chain({"id": "c", "type": "child", "childFlow": chain(adding("a", 1))}))
    before, _ = close_over(flow)
    assert flow.run() == 1
    change(flow)
    after, document = close_over(flow)
    assert after != before
    assert flow.run() == open_closure(document).run()


def test_the_closure_follows_a_document_that_is_changed_in_place() -> None:
    document = chain(adding("a", 1))
    flow = Flow.model_validate(document)
    before, _ = close_over(flow)
    document["nodes"][1]["output"] = True
    assert close_over(flow)[0] != before


def test_the_closure_follows_the_flows_it_refers_to() -> None:
    refers = chain({"id": "r", "type": "reference", "flowId": "other"})
    flow = Flow.model_validate(refers, resolver=lambda *_: chain(adding("a", 1)))
    before, _ = close_over(flow)
    flow.look_up(lambda *_: chain(adding("a", 2)))
    assert close_over(flow)[0] != before


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_flow_of_objects_has_the_same_closure_in_every_process(monkeypatch: pytest.MonkeyPatch, seed: str) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", seed)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    told = "from tests.unit.test_edited_flows import *; print(close_over(of_objects())[0])"
    done = subprocess.run([sys.executable, "-c", told], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == close_over(of_objects())[0]
