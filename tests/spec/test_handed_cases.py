"""Cases from reports about systems like this one, as far as expressions and the engine answer them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from plaita.core.flow import Flow
from tests.spec.deviations import DEVIATIONS
from tests.spec.handed import CASES, cases_of, ending, holds

AREAS = {"expression": 12, "engine": 13}


def circular() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["x"] = value
    return value


def nested_arrays() -> str:
    deep = "[" * 900 + "]" * 900
    return (
        f'{{"flow_id":"t","nodes":[{{"type":"start","id":"s","next":"e"}},{{"type":"end","id":"e","output":{deep}}}]}}'
    )


RULES: dict[str, Any] = {
    "params x = a dict that contains itself": circular,
    "the end node's output is 900 nested empty arrays": nested_arrays,
}
"""What a case describes in words, built."""


def play(given: dict[str, Any]) -> dict[str, Any]:
    """The value of a flow, or the kind and text of its error."""
    text = given.get("flow_text")
    if "flow_text_rule" in given:
        text = RULES[given["flow_text_rule"]]()
    value = RULES[given["input_rule"]]() if "input_rule" in given else given.get("input", {})

    def run() -> Any:
        flow = Flow.from_string(text) if text is not None else Flow.model_validate(given["flow"])
        return flow.run(value)

    return ending(run)


@pytest.mark.parametrize("case", cases_of(*AREAS), ids=lambda case: case["id"])
def test_a_handed_case_holds_or_is_a_listed_deviation(case: dict[str, Any]) -> None:
    expect, begin = case["expect"], time.perf_counter()
    found = play(case["given"])
    seconds = time.perf_counter() - begin
    match expect.get("invariant"):
        case None:
            pass
        case "returns in under 1 second":
            assert seconds < 1
        case other:
            raise AssertionError(f"no check for the invariant {other!r}")
    assert expect.get("never", "\0") not in found.get("text", "")
    deviation = DEVIATIONS.get(case["id"])
    if deviation is None:
        assert holds(expect, found), found
    else:
        assert holds(deviation.expect, found), found
        assert not holds(expect, found), "the case holds as it is: no deviation is needed"


def test_every_case_of_these_areas_is_there() -> None:
    areas = [case["area"] for case in cases_of(*AREAS)]
    assert {area: areas.count(area) for area in AREAS} == AREAS


def test_every_deviation_belongs_to_a_case() -> None:
    known = {path.stem for folder in (CASES, CASES.parent / "flows") for path in folder.rglob("*.json")}
    assert DEVIATIONS.keys() <= known
