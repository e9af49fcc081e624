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
    "009-index-out-of-range-named-error": Deviation(
        "E7", {"value": None}, "an index out of range is null, as a missing key is"
    ),
}


def exactly(value: Any) -> str:
    """A text that tells 1 from 1.0 and from true."""
    return json.dumps(value, ensure_ascii=False)
