"""``reference``: another flow by its id, found beside the file or among the published ones, pinned at the start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plaita import Flow, Runtime
from plaita.base.errors import FlowLoadError, InputError, NodeExecutionError
from plaita.base.json import encode
from tests.support.flows import chain, event


def calling(flow_id: str, **fields: Any) -> dict[str, Any]:
    return {"id": "call", "type": "reference", "flowId": flow_id, **fields}


SCOPE = {"input": "$INPUT", "g": "$GLOBAL.g", "parent": "$PARENT", "flow": "$FLOW_ID"}


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    with Runtime.open("memory:") as opened:
        yield opened


def write(folder: Path, name: str, document: dict[str, Any]) -> Path:
    path = folder / name
    path.write_bytes(encode(document))
    return path


def test_a_flow_that_is_referred_to_sees_nothing_of_the_other(tmp_path: Path) -> None:
    write(tmp_path, "other.json", chain(output=SCOPE, flow_id="other"))
    main = chain(calling("other", input={"a": "$INPUT.x"}), flow_id="main", globalContext={"g": 1})
    found = Flow.from_file(write(tmp_path, "main.json", main)).run(x=2, y=3)
    assert found == {"input": {"a": 2}, "g": None, "parent": {}, "flow": "other"}


def test_without_an_input_it_gets_an_empty_object(tmp_path: Path) -> None:
    write(tmp_path, "other.json", chain(output="$INPUT", flow_id="other"))
    assert Flow.from_file(write(tmp_path, "main.json", chain(calling("other")))).run(x=2) == {}


def test_it_is_found_by_its_id_whatever_its_file_is_called(tmp_path: Path) -> None:
    write(tmp_path, "zz.json", chain(output=1, flow_id="other"))
    (tmp_path / "broken.yaml").write_text("nodes: [")
    assert Flow.from_file(write(tmp_path, "main.json", chain(calling("other")))).run() == 1


def test_of_two_versions_the_one_asked_for_is_taken(tmp_path: Path) -> None:
    write(tmp_path, "a.json", chain(output="one", flow_id="other", version="1"))
    write(tmp_path, "b.json", chain(output="two", flow_id="other", version="2"))
    assert Flow.from_file(write(tmp_path, "main.json", chain(calling("other", flow_version=2)))).run() == "two"


def test_its_input_is_evaluated_then_defaulted_then_checked(tmp_path: Path) -> None:
    typed: dict[str, Any] = {
        "type": "object",
        "children": {"a": {"type": "integer", "required": True}, "b": {"default": 5}},
    }
    typed["children"]["b"]["type"] = "integer"
    write(tmp_path, "other.json", chain(output="$INPUT", flow_id="other", inputType=typed))
    flow = Flow.from_file(write(tmp_path, "main.json", chain(calling("other", input={"a": "$INPUT.x"}))))
    assert flow.run(x=2) == {"a": 2, "b": 5}
    with pytest.raises(NodeExecutionError, match=r"\$\.input\.a"):
        flow.run(x="two")


def test_an_unknown_flow_is_a_warning_at_load_and_a_named_error_when_it_is_reached() -> None:
    flow = Flow.model_validate(chain(calling("other")))
    assert [(i.code, i.severity) for i in flow.issues] == [("reference_missing", "warning")]
    assert flow.missing == (("other", ""),)
    with pytest.raises(NodeExecutionError, match="flow 'other' is not known here") as refused:
        flow.run()
    assert refused.value.kind == "not_found"


def test_a_flow_that_refers_to_an_unknown_one_is_not_started(runtime: Runtime) -> None:
    with pytest.raises(FlowLoadError, match="refers to flows not found: 'other'"):
        runtime.start(Flow.model_validate(chain(calling("other"))))


def test_recursion_is_refused_with_the_way_round(tmp_path: Path) -> None:
    write(tmp_path, "b.json", chain(calling("a"), flow_id="b"))
    with pytest.raises(FlowLoadError, match="a -> b -> a"):
        Flow.from_file(write(tmp_path, "a.json", chain(calling("b"), flow_id="a")))


def test_references_are_at_most_fifty_deep(tmp_path: Path) -> None:
    for i in range(60):
        write(tmp_path, f"f{i}.json", chain(calling(f"f{i + 1}"), flow_id=f"f{i}"))
    write(tmp_path, "f60.json", chain(output=1, flow_id="f60"))
    assert Flow.from_file(tmp_path / "f11.json").run() == 1
    with pytest.raises(FlowLoadError, match="nested deeper than 50"):
        Flow.from_file(tmp_path / "f8.json")


def test_flows_that_multiply_by_referring_twice_are_refused_before_memory_is_gone(tmp_path: Path) -> None:
    for i in range(30):
        twice = [calling(f"f{i + 1}"), {**calling(f"f{i + 1}"), "id": "again"}]
        write(tmp_path, f"f{i}.json", chain(*twice, flow_id=f"f{i}"))
    write(tmp_path, "f30.json", chain(output=1, flow_id="f30"))
    with pytest.raises(FlowLoadError, match="more than 5,000 sub-flows"):
        Flow.from_file(tmp_path / "f0.json")


def test_the_mistakes_of_another_flow_are_told_at_the_reference(tmp_path: Path) -> None:
    write(tmp_path, "other.json", chain({"id": "a", "type": "assignment", "output": "$F.nope()"}, flow_id="other"))
    with pytest.raises(FlowLoadError, match=r"nodes\[1\].flowId: flow 'other' does not load: .*nope"):
        Flow.from_file(write(tmp_path, "main.json", chain(calling("other"))))


def test_a_published_flow_is_found_and_pinned_at_the_start(runtime: Runtime) -> None:
    runtime.publish(Flow.model_validate(chain(event("wait"), output="old", flow_id="other")))
    run = runtime.start(Flow.model_validate(chain(calling("other"), flow_id="main")))
    assert run.wait()["waits"][0]["node"] == "call/wait"
    runtime.publish(Flow.model_validate(chain(output="new", flow_id="other")))
    assert run.resume({})["output"] == "old"
    assert runtime.start(Flow.model_validate(chain(calling("other"), flow_id="main"))).wait()["output"] == "new"


def test_references_of_published_flows_are_followed(runtime: Runtime) -> None:
    runtime.publish(Flow.model_validate(chain(output="$INPUT.n", flow_id="inner")))
    runtime.publish(Flow.model_validate(chain(calling("inner", input={"n": "$( $INPUT.n + 1 )"}), flow_id="middle")))
    runtime.publish(Flow.model_validate(chain(calling("middle", input={"n": 1}), flow_id="outer")))
    assert runtime.start("outer").wait()["output"] == 2


def test_a_file_beside_the_flow_goes_before_a_published_one(runtime: Runtime, tmp_path: Path) -> None:
    runtime.publish(Flow.model_validate(chain(output="published", flow_id="other")))
    write(tmp_path, "other.json", chain(output="beside", flow_id="other"))
    path = write(tmp_path, "main.json", chain(calling("other"), flow_id="main"))
    assert runtime.start(path).wait()["output"] == "beside"


def test_a_program_may_inject_the_flow(runtime: Runtime) -> None:
    flow = Flow.model_validate(chain(calling("other", input={"a": 1}), flow_id="main"))
    node: Any = flow.find_node_by_id("call")
    node.child_flow = Flow.model_validate(chain(output="$INPUT.a"))
    assert flow.run() == 1
    assert runtime.start(flow).wait()["output"] == 1


def test_a_wrong_input_of_the_main_flow_is_told_before_anything_is_looked_up(runtime: Runtime) -> None:
    document = chain(calling("other"), inputType={"type": "object", "children": {"a": {"type": "integer"}}})
    with pytest.raises(InputError):
        runtime.start(Flow.model_validate(document), {"a": "x"})
