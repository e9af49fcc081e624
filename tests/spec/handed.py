"""The cases from reports about other systems: reading one, and whether what came of it is what it expects."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plaita.base.errors import PlaitaError
from tests.spec.deviations import DEVIATIONS, exactly

CASES = Path(__file__).parents[1] / "cases"


def read_case(name: str) -> dict[str, Any]:
    """The case of that file name, or of the number that it begins with; none that is a listed deviation."""
    (path,) = CASES.glob(f"{name}.json" if "-" in name else f"{name}-*.json")
    assert path.stem not in DEVIATIONS
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def cases_of(*areas: str) -> list[dict[str, Any]]:
    """Every case of these areas, by file name."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CASES.glob("*.json"))]
    return [case for case in found if case["area"] in areas]


def ending(run: Callable[[], Any]) -> dict[str, Any]:
    """How a run ended: its value, or the kind and text of its error."""
    try:
        return {"value": run()}
    except PlaitaError as e:
        return {"error_kind": e.kind, "text": str(e)}


def holds(expect: dict[str, Any], found: dict[str, Any]) -> bool:
    """Does an expectation hold? Invariants and what must never be are checked by each test."""
    unknown = expect.keys() - {"value", "error_kind", "must_name", "any_of", "invariant", "never"}
    assert not unknown, f"no check for {unknown}"
    if "any_of" in expect:
        return any(holds(one, found) for one in expect["any_of"])
    if "error_kind" in expect:
        return found.get("error_kind") == expect["error_kind"] and _named(expect.get("must_name", ""), found["text"])
    if "value" in expect:
        return "value" in found and exactly(found["value"]) == exactly(expect["value"])
    return bool(expect.keys() & {"invariant", "never"})


def _named(word: str, text: str) -> bool:
    """A short name must stand in quotes: a single letter is part of many words."""
    return word in text if len(word) > 1 else not word or f"'{word}'" in text
