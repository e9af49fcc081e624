"""Files of saved cases: whatever stands in one is read or refused in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plaita.base.errors import FlowLoadError, NotFound
from plaita.base.json import Json
from plaita.core.flow import Flow
from plaita.testing.case_files import find_case_files, read_cases
from plaita.testing.doubles import Nodes
from tests.support.flows import chain

PAY = {"id": "pay", "type": "http", "url": "http://pay.example/"}
NODES = Nodes(Flow.model_validate(chain(PAY, output="done", flow_id="f")).program)
STEPS: list[Json] = [
    {"approve": {"by": "ann", "comment": "c", "form": {}, "at": "w"}}, {"reject": "bob"},
    {"event": {"type": "paid", "key": "k", "data": {}}}, {"resume": {"data": 1, "at": "w"}},
    {"advance": "PT1S"}, {"advance": {"hours": 1}}, {"waits": "w"}, "jump", "cancel", "retry",
]  # fmt: skip
ANSWERS = [
    {"raises": {"message": "m", "code": 1, "kind": "node_error", "retryable": True}},
    {"returns": 1, "after": "PT1S"},
    {"hangs": True},
]
CASE: dict[str, Json] = {
    "name": "n",
    "given": {"input": {"x": 1}, "env": {"A": "b"}, "now": "2030-01-07T09:00:00Z", "timezone": "UTC"},
    "mocks": {"pay": {"in_turn": ANSWERS}},
    "real": ["end"],
    "steps": STEPS,
    "expect": {
        "status": "completed", "output": 1, "contains": {"a": 1}, "error": {"code": 1, "kind": "k", "message": "m"},
        "waits": "w", "path": ["start"], "calls": {"pay": 1},
    },
    "crash": False,
}  # fmt: skip
STRANGE: list[Json] = [None, True, -1, 10**40, "", "x", "\0", [], [None], [[]], {}, {"a": 1}, {"": {}}, [{"a": [1]}]]
Place = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*place, key))


def with_value(place: Place, value: Json) -> Json:
    changed = json.loads(json.dumps(CASE))
    if not place:
        return value
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return changed


@pytest.mark.parametrize("place", [*places(CASE)], ids=lambda place: ".".join(map(str, place)) or "all")
def test_a_strange_value_anywhere_is_read_or_refused_with_its_line(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "f.cases.json"
    for value in STRANGE:
        path.write_text(json.dumps({"cases": [with_value(place, value)]}))
        try:
            [case] = read_cases(path, NODES)
        except FlowLoadError as e:
            assert all(issue.line for issue in e.issues), e
        else:
            assert case.line == 1


TOLD: dict[str, tuple[Place, Json]] = {
    "given.env.A: a variable is text": (("given", "env", "A"), {"b": 1}),
    "given.timezone: 'Nowhere/X' is no time zone": (("given", "timezone"), "Nowhere/X"),
    "given.timezone: timezone is text, not 5": (("given", "timezone"), 5),
    "given.now: true is no time": (("given", "now"), True),
    "given.now: 1000000": (("given", "now"), 10**40),
    "real: real is true, or a list of nodes": (("real",), [[]]),
    "after: each answer of in_turn has an 'after' of its own": (("mocks", "pay", "after"), "PT1S"),
    "retryable: retryable is true or false": (("mocks", "pay", "in_turn", 0, "raises", "retryable"), "no"),
    "kind: null is no kind of error": (("mocks", "pay", "in_turn", 0, "raises", "kind"), None),
    "approve.by: by is text, not 5": (("steps", 0, "approve", "by"), 5),
    "event.key: key is text, not []": (("steps", 2, "event", "key"), []),
    "resume.at: at is text, not {}": (("steps", 3, "resume", "at"), {}),
    "advance: that is no time": (("steps", 4, "advance"), 0),
    "advance: -5400000.0 ms is out of range": (("steps", 5, "advance", "hours"), -1.5),
    "advance.hours: hours are a number, not 'x'": (("steps", 5, "advance", "hours"), "x"),
    'advance: {"hours": 1000000': (("steps", 5, "advance", "hours"), 10**40),
    "waits: what it waits for is text": (("steps", 6, "waits"), 5),
    "expect.waits: waits is what it waits for": (("expect", "waits"), 5),
    "expect.error.message: message is text": (("expect", "error", "message"), 5),
    "expect.calls.pay: calls are a list": (("expect", "calls", "pay"), -1),
    "expect.status: null is none of": (("expect", "status"), None),
    "flow: flow is text, not 5": (("flow",), 5),
}


@pytest.mark.parametrize("told", TOLD)
def test_a_value_of_the_wrong_kind_is_named(told: str, tmp_path: Path) -> None:
    path = tmp_path / "f.cases.json"
    path.write_text(json.dumps(with_value(*TOLD[told])))
    with pytest.raises(FlowLoadError) as refused:
        read_cases(path, NODES)
    assert f"{told}" in str(refused.value)


def test_a_variable_may_be_a_number(tmp_path: Path) -> None:
    path = tmp_path / "f.cases.json"
    path.write_text(json.dumps(with_value(("given", "env", "A"), 8080)))
    assert read_cases(path, NODES)[0].env == {"A": "8080"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"name: &a\n  x: *a\n", "a value cannot contain itself"),
        (b"cases: &a [*a]\n", "a value cannot contain itself"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"a\x00b", "not allowed"),
        (b"- a\n", "is one object"),
        (b"", "is one object"),
        (b"a: 1\n---\nb: 2\n", "more than one document"),
        (b"name: a\nname: b\n", "appears twice"),
        (b'{"name": ' + b"[" * 100_000, "nested deeper"),
    ],
)
def test_a_file_that_is_none_of_cases_is_refused(text: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "f.cases.yaml"
    path.write_bytes(text)
    with pytest.raises(FlowLoadError, match=why):
        read_cases(path, NODES)


def test_a_directory_is_no_file_of_cases(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="Is a directory"):
        read_cases(tmp_path, NODES)


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(FlowLoadError, match="characters"):
        read_cases(Path("/dev/zero"), NODES)


def test_a_file_beside_the_flow_that_names_no_possible_file_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    strange = tmp_path / "cases" / "a.json"
    strange.write_text(json.dumps({"flow": "\0"}))
    assert find_case_files(tmp_path / "f.yaml") == [strange]
