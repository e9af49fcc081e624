"""The complete flows that the published system answers: the same answers here, or a listed deviation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plaita.base.errors import FlowExecutionException, FlowLoadError
from plaita.core.executor import FlowExecution
from plaita.core.flow import Flow
from tests.spec.deviations import DEVIATIONS, exactly

FLOWS = Path(__file__).parents[1] / "flows"
ELSEWHERE = frozenset({"22-http-get-literal", "23-http-dry-run"})
"""Flows that need a server, in ``test_handed_flows_http``."""


def names() -> list[str]:
    return [path.stem for path in sorted(FLOWS.glob("[0-9]*.json")) if path.stem not in ELSEWHERE]


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FLOWS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def play(given: dict[str, Any]) -> dict[str, Any]:
    """What the flow gives: its value, or its error; with the state of the node where it was suspended."""
    try:
        flow = Flow.model_validate(given["flow"])
        if given.get("mode") != "distributed":
            return {"value": flow.run(given["input"])}
        return driven(flow, given)
    except FlowLoadError as e:
        return {"load_error": e.issues[0].code}
    except FlowExecutionException as e:
        return {"exception": [cls.__name__ for cls in type(e).__mro__], "code": e.code, "error_type": e.error_type,
                "message": e.message}  # fmt: skip


def driven(flow: Flow, given: dict[str, Any]) -> dict[str, Any]:
    """One step a call, over JSON; waits are answered as the flow says."""
    suspended: Any = None
    step = FlowExecution().run_distributed(flow, given["input"])
    while not step["is_end"]:
        options: dict[str, Any] = {}
        if step["is_suspend"]:
            suspended = step["result"]
            options = json.loads(json.dumps(given["resume"]))
            if "resume_data" in options:
                options["resume_data"]["subscription_id"] = suspended.get("subscription_id")
        step = FlowExecution().run_distributed(flow, saved_context=json.loads(json.dumps(step["context"])), **options)
    return {"value": step["result"], "suspended": suspended}


def holds(given: dict[str, Any], found: dict[str, Any]) -> bool:
    wanted = given.get("expected_error")
    if wanted is not None:
        named = wanted["exception"] in found.get("exception", [])
        return named and all(found[key] == wanted[key] for key in wanted.keys() - {"exception"})
    state = given.get("expected_suspended", {})
    as_expected = all((found.get("suspended") or {}).get(key) == value for key, value in state.items())
    return "value" in found and as_expected and exactly(found["value"]) == exactly(given["expected"])


@pytest.mark.parametrize("name", names())
def test_a_handed_flow_holds_or_is_a_listed_deviation(name: str) -> None:
    given = read(name)
    found = play(given)
    deviation = DEVIATIONS.get(name)
    if deviation is None:
        assert holds(given, found), found
    else:
        assert {key: found.get(key) for key in deviation.expect} == deviation.expect
        assert not holds(given, found), "the flow holds as it is: no deviation is needed"


def test_there_are_twenty_seven() -> None:
    assert len(names()) + len(ELSEWHERE) == 27
