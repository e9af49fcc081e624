"""Where a handed case expects something else than was decided. One row a case, for every kind of case."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Deviation(NamedTuple):
    """``rule`` is the row of the differences page that decides; ``expect`` replaces the expectation of the case."""

    rule: str
    expect: dict[str, Any]
    reason: str


_BOOLEAN = "$F.or of falsy arguments is false, and a boolean is never a number: adding it is a type error"

DEVIATIONS: dict[str, Deviation] = {
    "06-same-node-id-in-parent-and-child": Deviation(
        "E3",
        {"value": [[None, "inner"], "outer"]},
        "$NODE.<id> binds at load to the nearest flow that declares the id: null until it has run",
    ),
    "12-condition-null-rules": Deviation(
        "E7", {"load_error": "condition_empty_group"}, "an empty condition group is a load error"
    ),
    "21-wait-in-a-graph-cycle": Deviation("E7", {"error": {"code": -520, "path": ["n"]}}, _BOOLEAN),
    "31-late-wake-of-an-earlier-visit-of-a-child": Deviation("E7", {"error": {"code": -520, "path": ["n"]}}, _BOOLEAN),
    "07-child-scope": Deviation(
        "E3",
        {"value": {"own": 5, "fallback": 5, "parentNode": 7, "explicit": 5, "rate": 2, "cond": "cd"}},
        "one scope rule everywhere: a condition sees what an output sees",
    ),
    "08-parallel-join-partial-failure": Deviation(
        "E14",
        {"code": 12, "error_type": "error_result", "message": "broken leg"},
        "a failed branch fails the node, with its own code, unless onBranchError says collect",
    ),
    "13-expression-tour": Deviation(
        "E6",
        {
            "value": {
                "idx": 3,
                "dot": 1,
                "deep": "x",
                "miss": None,
                "tern": "many",
                "sort": [{"n": 3}, {"n": 1}],
                "join": "a|b",
                "lit": "plain $INPUT.csv",
                "tpl": "<a,b|3|>",
                "quote": "it's q \\",
                "js": {"k": [1]},
                "nested": [1, {"z": False}],
            }
        },
        "null renders as empty in a template",
    ),
    "009-index-out-of-range-named-error": Deviation(
        "E7", {"value": None}, "an index out of range is null, as a missing key is"
    ),
}


def exactly(value: Any) -> str:
    """A text that tells 1 from 1.0 and from true."""
    return json.dumps(value, ensure_ascii=False)
