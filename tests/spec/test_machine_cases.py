"""The machine's cases: plain, restored before every advance, and with a fuel of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from plaita.core.errors import FlowLoadError
from plaita.core.flow import Flow
from plaita.engine.effects import Failed
from plaita.node.basic import Node
from plaita.node.registry import NodeRegistry
from tests.spec.deviations import DEVIATIONS, exactly
from tests.support.machine_world import World

CASES = Path(__file__).parents[1] / "cases" / "machine"


def registry(calls: list[str]) -> NodeRegistry:
    class FlakyOnce(Node):
        node_type: ClassVar[str] = "flaky_once"
        input: Any = None

        def execute(self, execution: Any) -> Any:
            calls.append(execution.idempotency_key)
            if len(calls) == 1:
                raise OSError("the first call fails")
            return execution.evaluate(self.input)

    class Mutate(Node):
        node_type: ClassVar[str] = "mutate"
        input: Any = None

        def execute(self, execution: Any) -> Any:
            calls.append(execution.idempotency_key)
            value = execution.evaluate(self.input)
            value.append(99)
            return value

    found = NodeRegistry()
    found.register(FlakyOnce)
    found.register(Mutate)
    return found


def play(case: dict[str, Any], **options: Any) -> dict[str, Any]:
    calls: list[str] = []
    try:
        flow = Flow.model_validate(case["given"]["flow"], registry=registry(calls))
    except FlowLoadError as e:
        return {"load_error": next(i.code for i in e.issues if i.severity == "error")}
    world = World(flow, case["given"]["input"], **options)
    world.settle_calls()
    for act in case.get("drive", ()):
        if isinstance(world.ended, Failed):
            break
        match act:
            case {"waits": expected}:
                assert world.waits() == sorted(expected)
            case {"crash": True}:
                if world.ended is None:
                    world.crash()
            case {"wake": address, "data": data}:
                world.wake(address, data)
            case {"rewake": _, "data": data}:
                world.rewake(data)
            case {"elapse_ms": ms}:
                world.elapse(ms)
            case _:
                raise AssertionError(act)
    world.until_quiet()
    return result_of(case, world, calls)


def result_of(case: dict[str, Any], world: World, calls: list[str]) -> dict[str, Any]:
    expected = case["expect"]
    if isinstance(world.ended, Failed) and "error" not in expected:
        return {"error": {"code": world.failure.code, "path": list(world.failure.path)}}
    if "error" in expected:
        failure = world.failure
        full = {"code": failure.code, "message": failure.message, "path": list(failure.path)}
        return {"error": {key: full[key] for key in expected["error"]}}
    found: dict[str, Any] = {"value": world.output}
    if "key_order" in expected:
        found["key_order"] = list(world.output)
    if "calls" in expected:
        found["calls"] = len(calls)
    assert list(world.store) == ["h"], "nothing but the header stays"
    assert not world.labels
    return found


def cases() -> list[str]:
    return sorted(p.stem for p in CASES.glob("*.json"))


MODES: dict[str, dict[str, Any]] = {
    "plain": {},
    "restored": {"restless": True},
    "single": {"fuel": 1, "restless": True},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("21-wait-in-a-graph-cycle", "$( ($NODE.n or 0) + ($NODE.w.event_data.v if $NODE.w else 0) )"),
        ("31-late-wake-of-an-earlier-visit-of-a-child", "$( ($NODE.n or 0) + 1 )"),
    ],
)
def test_a_cycle_case_holds_when_its_sum_is_written_with_numbers(name: str, expression: str, mode: str) -> None:
    case = json.loads((CASES / f"{name}.json").read_text())
    next(n for n in case["given"]["flow"]["nodes"] if n["id"] == "n")["output"] = expression
    assert exactly(play(case, **MODES[mode])) == exactly(case["expect"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", cases())
def test_a_machine_case_holds_or_is_a_listed_deviation(name: str, mode: str) -> None:
    case = json.loads((CASES / f"{name}.json").read_text())
    found = play(case, **MODES[mode])
    if name in DEVIATIONS:
        assert exactly(found) == exactly(DEVIATIONS[name].expect)
        assert exactly(found) != exactly(case["expect"]), "the case holds as it is: no deviation is needed"
    else:
        assert exactly(found) == exactly(case["expect"])
