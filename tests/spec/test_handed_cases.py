"""Cases from reports about systems like this one, as far as expressions and the engine answer them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from plaita.base.errors import PlaitaError
from plaita.core.flow import Flow
from tests.spec.deviations import DEVIATIONS, exactly

CASES = Path(__file__).parents[1] / "cases"
AREAS = {"expression": 12, "engine": 13}


def all_cases() -> list[dict[str, Any]]:
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CASES.glob("*.json"))]
    return [case for case in found if case["area"] in AREAS]


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
    try:
        flow = Flow.from_string(text) if text is not None else Flow.model_validate(given["flow"])
        return {"value": flow.run(value)}
    except PlaitaError as e:
        return {"error_kind": e.kind, "text": str(e)}


def holds(expect: dict[str, Any], found: dict[str, Any]) -> bool:
    """Does an expectation hold?"""
    unknown = expect.keys() - {"value", "error_kind", "must_name", "invariant", "never", "any_of"}
    assert not unknown, f"no check for {unknown}"
    if "any_of" in expect:
        return any(holds(one, found) for one in expect["any_of"])
    if "error_kind" in expect:
        return bool(
            found.get("error_kind") == expect["error_kind"] and named(expect.get("must_name", ""), found["text"])
        )
    return "value" in found and exactly(found["value"]) == exactly(expect["value"])


def named(word: str, text: str) -> bool:
    """A short name must stand in quotes: a single letter is part of many words."""
    return word in text if len(word) > 1 else not word or f"'{word}'" in text


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case["id"])
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
    areas = [case["area"] for case in all_cases()]
    assert {area: areas.count(area) for area in AREAS} == AREAS


def test_every_deviation_belongs_to_a_case() -> None:
    known = {path.stem for folder in (CASES, CASES.parent / "flows") for path in folder.rglob("*.json")}
    assert DEVIATIONS.keys() <= known
