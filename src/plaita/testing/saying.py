"""What a test says when something is not as expected: where a run is now, and how two values differ."""

from __future__ import annotations

import difflib
import json

from plaita.base.json import Json
from plaita.control.shapes import Shape

SHOWN_LINES_MAX = 60
COMPACT_CHARS_MAX = 100


class NotAsExpected(AssertionError):
    """A flow under test did something else than the test says."""


def shown(value: Json) -> str:
    """A value as JSON: on one line while that is short."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= COMPACT_CHARS_MAX else json.dumps(value, ensure_ascii=False, indent=2)


def difference(expected: Json, actual: Json) -> list[str]:
    """Lines that tell two values apart: ``-`` what was expected, ``+`` what there is; empty when they are equal."""
    if same(expected, actual):
        return []
    before, after = _lines(expected), _lines(actual)
    found = list(difflib.unified_diff(before, after, n=3, lineterm=""))[2:]
    lines = [f"{line[0]} {line[1:]}" for line in found if not line.startswith("@@")]
    if len(lines) > SHOWN_LINES_MAX:
        lines = [*lines[:SHOWN_LINES_MAX], f"… and {len(lines) - SHOWN_LINES_MAX} more lines"]
    return lines


def same(a: Json, b: Json) -> bool:
    """Equality of JSON values: true is not 1, but 1 is 1.0."""
    match a, b:
        case (bool(), _) | (_, bool()):
            return a is b
        case (dict(), dict()):
            return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
        case (list(), list()):
            return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return (numbers or type(a) is type(b)) and bool(a == b)


def _lines(value: Json) -> list[str]:
    compact = json.dumps(value, ensure_ascii=False)
    if len(compact) <= COMPACT_CHARS_MAX and not isinstance(value, dict):
        return [compact]
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True).split("\n")


def state_in_words(shape: Shape, tasks: dict[str, Shape]) -> str:
    """Where a run is now, and what it waits for."""
    match shape["status"]:
        case "completed":
            return f"the run completed with {shown(shape['output'])}"
        case "cancelled":
            return "the run was cancelled"
        case "error":
            return f"the run failed{failure_in_words(shape['error'])}"
    if shape.get("blocked_reason"):
        return f"the run is blocked: {shape['blocked_reason']}"
    waits = [_wait_in_words(wait, tasks.get(wait.get("task_id", ""))) for wait in shape["waits"]]
    return (
        "\n".join(["the run waits for", *(f"  {line}" for line in waits)]) if waits else f"the run is {shape['status']}"
    )


def failure_in_words(error: Json) -> str:
    """`` at a/b: it broke (node_error, code -520)``."""
    path = "/".join(map(str, error.get("path") or ()))
    where = f" at {path}" if path else ""
    return f"{where}: {error['message']} ({error['kind']}, code {error['code']})"


def _wait_in_words(wait: Shape, task: Shape | None) -> str:
    what = {"event": "an event", "approval": "an approval"}.get(wait["kind"], f"a {wait['kind']}")
    if wait["kind"] == "event":
        key = f" with the key {wait['key']!r}" if "key" in wait else ""
        what = f"the event {wait['event_type']!r}{key}"
    until = f", until {wait['deadline']}" if wait["deadline"] else ""
    votes = ""
    if task is not None:
        approvers = f" of {', '.join(task['approvers'])}" if task["approvers"] else ""
        voted = ", ".join(f"{v['by']} says {'yes' if v['approved'] else 'no'}" for v in task["votes"])
        votes = f", {task['strategy']}{approvers}{f'; {voted}' if voted else ''}"
    return f"{what} at {wait['node']}{votes}{until}"
