"""Waits through the command line on SQLite, with workers in processes of their own and restarts in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fleet import Fleet, command, lines_of, wait_until

RESTARTS = pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path)
    fleet.runtime().close()
    fleet.start_worker()
    yield fleet
    fleet.stop()


def start(fleet: Fleet, nodes: list[dict[str, Any]], value: dict[str, Any] | None = None, *options: str) -> str:
    path = fleet.folder / "flow.json"
    path.write_text(json.dumps({"flow_id": "t", "nodes": nodes}))
    inputs = [part for key, item in (value or {}).items() for part in ("-i", f"{key}={json.dumps(item)}")]
    answer = command(fleet, "start", str(path), *inputs, *options, "--json")
    assert answer.code == 0, answer
    return str(answer.json["execution_id"])


def inspect(fleet: Fleet, execution: str) -> dict[str, Any]:
    with fleet.runtime() as runtime:
        return runtime.execution(execution).inspect()


def waiting(fleet: Fleet, execution: str, count: int = 1) -> list[dict[str, Any]]:
    def check() -> list[dict[str, Any]] | None:
        shape = inspect(fleet, execution)
        assert shape["status"] not in ("error", "cancelled"), shape
        return shape["waits"] if len(shape["waits"]) == count else None

    found: list[dict[str, Any]] = wait_until(check, f"{count} waits")
    return found


def ended(fleet: Fleet, execution: str) -> dict[str, Any]:
    def check() -> dict[str, Any] | None:
        shape = inspect(fleet, execution)
        return shape if shape["status"] in ("completed", "error", "cancelled") else None

    found: dict[str, Any] = wait_until(check, "the end")
    return found


def restart_all(fleet: Fleet, restart: bool) -> None:
    if restart:
        fleet.stop()
        fleet.start_worker()


def event(node_id: str, following: str, **fields: Any) -> dict[str, Any]:
    return {"type": "event", "id": node_id, "event_type": "go", "next": following, **fields}


@RESTARTS
def test_an_approval_inside_a_map_inside_a_child(fleet: Fleet, restart: bool) -> None:
    approval = {"type": "approval", "id": "ok", "approval_title": "{% $INPUT.item %}?", "next": "e"}
    body = [
        {"type": "start", "id": "s", "next": "ok"},
        approval,
        {"type": "end", "id": "e", "output": "$NODE.ok.event_data.approved"},
    ]
    mapping = {"type": "map", "id": "m", "collection": "$INPUT.xs", "childFlow": {"nodes": body}, "next": "e"}
    child = [{"type": "start", "id": "s", "next": "m"}, mapping, {"type": "end", "id": "e", "output": "$NODE.m"}]
    execution = start(
        fleet,
        [
            {"type": "start", "id": "s", "next": "c"},
            {"type": "child", "id": "c", "childFlow": {"nodes": child}, "next": "e"},
            {"type": "end", "id": "e", "output": "$NODE.c"},
        ],
        {"xs": ["a", "b"]},
    )
    for address, verb in (("c/m:0/ok", "approve"), ("c/m:1/ok", "reject")):
        (wait,) = wait_until(lambda at=address: [w for w in waiting(fleet, execution) if w["node"] == at], address)
        restart_all(fleet, restart)
        assert command(fleet, verb, wait["task_id"], "--by", "ann").code in (0, 3)
    assert ended(fleet, execution)["output"] == [True, False]


@RESTARTS
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_two_branches_wait_and_are_answered_in_either_order(fleet: Fleet, restart: bool, order: str) -> None:
    def branch(name: str) -> dict[str, Any]:
        end = {"type": "end", "id": "e", "output": "$NODE.w.event_data"}
        return {"name": name, "flow": {"nodes": [{"type": "start", "id": "s", "next": "w"}, event("w", "e"), end]}}

    execution = start(
        fleet,
        [
            {"type": "start", "id": "s", "next": "p"},
            {"type": "parallel", "id": "p", "branches": [branch("a"), branch("b")], "next": "e"},
            {"type": "end", "id": "e", "output": "$NODE.p"},
        ],
    )
    waiting(fleet, execution, 2)
    restart_all(fleet, restart)
    for name in order:
        answer = command(fleet, "resume", execution, "--wait", f"p:{name}/w", "--data", json.dumps(name))
        assert answer.code in (0, 3), answer
    shape = ended(fleet, execution)
    assert shape["output"] == {"a": "a", "b": "b"}
    assert list(shape["output"]) == ["a", "b"]


@pytest.mark.timeout(60)
def test_an_approval_beside_a_running_node_is_answered_while_it_runs(fleet: Fleet, record_property: Any) -> None:
    effects, moved = fleet.folder / "slow", fleet.folder / "moved"
    long = [
        {"type": "start", "id": "s", "next": "n"},
        {"type": "append", "id": "n", "path": str(effects), "seconds": 10, "next": "e"},
        {"type": "end", "id": "e", "output": 1},
    ]
    asking = [
        {"type": "start", "id": "s", "next": "ok"},
        {"type": "approval", "id": "ok", "approval_title": "?", "next": "n"},
        {"type": "append", "id": "n", "path": str(moved), "next": "e"},
        {"type": "end", "id": "e", "output": "$NODE.ok.event_data.approved"},
    ]
    branches = [{"name": "long", "flow": {"nodes": long}}, {"name": "ask", "flow": {"nodes": asking}}]
    execution = start(
        fleet,
        [
            {"type": "start", "id": "s", "next": "p"},
            {"type": "parallel", "id": "p", "branches": branches, "next": "e"},
            {"type": "end", "id": "e", "output": "$NODE.p.ask"},
        ],
    )
    (task,) = wait_until(lambda: command(fleet, "inbox", "--json").json["items"], "the task in the inbox")
    assert command(fleet, "approve", task["task_id"], "--by", "ann").code in (0, 3)
    wait_until(lambda: lines_of(moved), "the branch behind the approval moves")
    assert not lines_of(effects), "the long node still runs"
    assert ended(fleet, execution)["output"] is True


@RESTARTS
def test_an_event_before_its_wait_counts_when_it_is_correlated(fleet: Fleet, restart: bool) -> None:
    execution = start(
        fleet,
        [
            {"type": "start", "id": "s", "next": "first"},
            event("first", "second", correlation="$INPUT.key", event_type="one"),
            event("second", "e", correlation="$INPUT.key", event_type="two"),
            {"type": "end", "id": "e", "output": ["$NODE.first.event_data", "$NODE.second.event_data"]},
        ],
        {"key": "k1"},
    )
    waiting(fleet, execution)
    command(fleet, "event", "publish", "two", "--key", "k1", "--data", "2")
    assert [w["node"] for w in waiting(fleet, execution)] == ["first"]
    restart_all(fleet, restart)
    command(fleet, "event", "publish", "one", "--key", "k1", "--data", "1")
    assert ended(fleet, execution)["output"] == [1, 2]


def test_an_event_published_twice_under_one_id_is_one_event(fleet: Fleet) -> None:
    execution = start(
        fleet,
        [
            {"type": "start", "id": "s", "next": "first"},
            event("first", "second"),
            event("second", "e"),
            {"type": "end", "id": "e", "output": ["$NODE.first.event_data", "$NODE.second.event_data"]},
        ],
    )
    waiting(fleet, execution)
    for _ in range(2):
        command(fleet, "event", "publish", "go", "--id", "e1", "--data", "1")
        assert [w["node"] for w in wait_until(lambda: _at(fleet, execution, "second"), "second")] == ["second"]
    command(fleet, "event", "publish", "go", "--id", "e2", "--data", "2")
    assert ended(fleet, execution)["output"] == [1, 2]


def _at(fleet: Fleet, execution: str, node: str) -> list[dict[str, Any]] | None:
    waits = waiting(fleet, execution)
    return waits if [w["node"] for w in waits] == [node] else None


@RESTARTS
def test_a_wait_that_nobody_answers_takes_its_timeout_branch(fleet: Fleet, restart: bool) -> None:
    execution = start(
        fleet,
        [
            {"type": "start", "id": "s", "next": "w"},
            event("w", "i", subscription_timeout=2),
            {
                "type": "if",
                "id": "i",
                "condition": {"field": "$NODE.w.status", "operator": "eq", "value": "timeout"},
                "next": "late",
                "else_next": "intime",
            },
            {"type": "end", "id": "late", "output": "nobody came"},
            {"type": "end", "id": "intime", "output": "somebody came"},
        ],
    )
    waiting(fleet, execution)
    restart_all(fleet, restart)
    assert ended(fleet, execution)["output"] == "nobody came"


def test_cancel_reaches_a_waiting_a_running_and_a_queued_execution(fleet: Fleet) -> None:
    effects = fleet.folder / "never"
    begin: dict[str, Any] = {"type": "start", "id": "s", "next": "w"}
    waits = start(fleet, [begin, event("w", "e"), {"type": "end", "id": "e"}])
    waiting(fleet, waits)
    nodes: list[dict[str, Any]] = [
        {"type": "start", "id": "s", "next": "n"},
        {"type": "append", "id": "n", "path": str(effects), "seconds": 30, "next": "e"},
        {"type": "end", "id": "e"},
    ]
    runs = start(fleet, nodes)
    wait_until(lambda: _started(fleet, runs), "the node starts")
    queued = start(fleet, nodes, None, "--not-before", "2100-01-01T00:00:00Z")
    for execution in (waits, runs, queued):
        assert command(fleet, "cancel", execution).code == 0
        assert ended(fleet, execution)["status"] == "cancelled"
    assert command(fleet, "inbox", "--json").json["items"] == []


def _started(fleet: Fleet, execution: str) -> bool:
    with fleet.runtime() as runtime:
        return any(entry["event"] == "node_start" for entry in runtime.execution(execution).history())
