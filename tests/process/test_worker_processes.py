"""``plaita worker --processes``: those that die are replaced, and what they held goes on at once."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from plaita import Flow
from plaita.node.registry import get_default_registry
from plaita.runtime import Runtime
from plaita.runtime.runtime import Execution
from tests.servers import free_port
from tests.support.fleet import PATIENCE_S, Fleet, command, wait_until
from tests.support.outside import Crash
from tests.support.redis_fleet import RedisFleet, all_completed, effects, histories_are_single, load_of

pytestmark = pytest.mark.timeout(60)

TAKEOVER_S = 5.0
"""Well below the lease of 10 s: the place of a dead child was taken because its parent said so. It is some 0.1 s."""


@pytest.fixture(params=["sqlite", "redis"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    options = ("--processes", "2", "--concurrency", "4")
    if request.param == "redis":
        found: Fleet = RedisFleet(tmp_path, options, url=request.getfixturevalue("redis_url"))
    else:
        found = Fleet(tmp_path, options)
    found.runtime().close()
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture
def on_file(tmp_path: Path) -> Iterator[Fleet]:
    found = Fleet(tmp_path, ("--processes", "2"))
    found.runtime().close()
    try:
        yield found
    finally:
        found.stop()


def children(runtime: Runtime) -> set[int]:
    return {process.pid for process in runtime.ask(lambda store: store.living())}


@contextmanager
def supervised(fleet: Fleet) -> Iterator[tuple[int, Runtime]]:
    """A parent with two children that take runs."""
    parent = fleet.start_worker()
    with fleet.runtime() as runtime:
        wait_until(lambda: len(children(runtime)) == 2, "two children are there")
        yield parent, runtime


def takeovers(executions: list[Execution]) -> list[float]:
    """When runs were taken over, as the store has it; seconds since 1970."""
    entries = [entry for execution in executions for entry in execution.history()]
    return [datetime.fromisoformat(e["at"]).timestamp() for e in entries if e["event"] == "claimed" and "takeover" in e]


def test_what_a_killed_child_held_goes_on_at_once_and_a_new_child_takes_its_place(
    fleet: Fleet, tmp_path: Path, record_property: Any
) -> None:
    with supervised(fleet) as (parent, runtime):
        before = children(runtime)
        executions = load_of(runtime, tmp_path, 4, 15, 0.05)
        wait_until(lambda: len(effects(tmp_path)) >= 12, "12 effects")
        victim = effects(tmp_path)[-1].pid
        os.kill(victim, signal.SIGKILL)
        killed_s = time.time()
        views = all_completed(runtime, executions)
        histories_are_single(executions)
        taken_s = max(takeovers(executions)) - killed_s
        after = wait_until(lambda: len(now := children(runtime)) == 2 and now, "two children are there")
    assert parent not in before | after
    assert victim in before and victim not in after
    assert 0 < sum(view.lost for view in views) <= 4
    record_property("takeover of a child s", taken_s)
    assert taken_s < TAKEOVER_S
    assert len({line.key for line in effects(tmp_path)}) == 4 * 15


def test_a_node_that_kills_its_process_ends_its_own_execution_and_no_other(fleet: Fleet, tmp_path: Path) -> None:
    get_default_registry().register(Crash)
    poison = {"nodes": [{"type": "start", "id": "s", "next": "c"}, {"type": "crash", "id": "c", "next": "e"},
                        {"type": "end", "id": "e"}]}  # fmt: skip
    with supervised(fleet) as (_, runtime):
        deadly = runtime.start(Flow.model_validate({"flow_id": "poison", **poison}))
        neighbours = load_of(runtime, tmp_path, 4, 5, 0.05)
        shape = wait_until(lambda: (s := deadly.inspect())["status"] == "error" and s, "the execution ends", 30)
        all_completed(runtime, neighbours)
        wait_until(lambda: len(children(runtime)) == 2, "two children are there")
    assert shape["error"]["error_type"] == "worker_lost"


def test_sigterm_lets_every_child_drain_and_hand_back(on_file: Fleet, tmp_path: Path) -> None:
    with supervised(on_file) as (parent, runtime):
        executions = load_of(runtime, tmp_path, 6, 100, 0.05)
        wait_until(lambda: len(effects(tmp_path)) >= 6, "6 effects")
        process = on_file.processes.pop(parent)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
        assert children(runtime) == set()
        assert {e.inspect()["status"] for e in executions} == {"running"}
        assert takeovers(executions) == []
        assert runtime.ask(lambda store: store.audit()) == []
        held = [view.token for view in runtime.ask(lambda store: store.runs())[0]]
    assert held == [None] * 6


def test_a_second_signal_kills_the_children_and_frees_what_they_held(on_file: Fleet, tmp_path: Path) -> None:
    with supervised(on_file) as (parent, runtime):
        load_of(runtime, tmp_path, 1, 2, 600)
        wait_until(lambda: runtime.ask(lambda store: store.runs(status="running"))[0], "it runs")
        process = on_file.processes.pop(parent)
        process.terminate()
        wait_until(lambda: len(children(runtime)) == 1, "the idle child has left")
        process.terminate()
        assert process.wait(PATIENCE_S) == 130
        assert children(runtime) == set()
        [view], _ = runtime.ask(lambda store: store.runs())
        assert view.due_ms is not None and view.due_ms <= runtime.ask(lambda store: store.now_ms())


def test_children_whose_parent_is_killed_drain_by_themselves(on_file: Fleet, tmp_path: Path) -> None:
    with supervised(on_file) as (parent, runtime):
        executions = load_of(runtime, tmp_path, 4, 100, 0.05)
        wait_until(lambda: len(effects(tmp_path)) >= 6, "6 effects")
        on_file.kill(parent)
        wait_until(lambda: children(runtime) == set(), "the children are gone")
        views, _ = runtime.ask(lambda store: store.runs())
        assert [view.token for view in views] == [None] * 4
        assert takeovers(executions) == []


def test_a_child_that_was_told_to_leave_is_not_replaced(on_file: Fleet) -> None:
    with supervised(on_file) as (parent, runtime):
        for pid in children(runtime):
            os.kill(pid, signal.SIGTERM)
        assert on_file.processes.pop(parent).wait(PATIENCE_S) == 0


def pages_at(port: int) -> list[str]:
    return [httpx.get(f"http://127.0.0.1:{port + n}/metrics").text for n in range(2)]


def test_each_process_serves_its_pages_is_listed_and_logs_one_object_a_line(tmp_path: Path) -> None:
    port = free_port(2)
    fleet = Fleet(tmp_path, ("--processes", "2", "--metrics-port", str(port), "--metrics-host", "127.0.0.1", "--debug"))
    fleet.runtime().close()
    log = tmp_path / "log"
    with log.open("w") as stream, fleet.runtime() as runtime:
        fleet.variables.update(PLAITA_LOG_FORMAT="json", PLAITA_INSTANCE_ID="unit")
        parent = fleet.start_worker(stderr=stream)
        wait_until(lambda: len(children(runtime)) == 2, "two children are there")
        answers = [httpx.get(f"http://127.0.0.1:{port + n}/health") for n in range(2)]
        wait_until(lambda: all("\nplaita_workers 2.0\n" in page for page in pages_at(port)), "both pages count both")
        listed = command(fleet, "workers", "--json").json["items"]
        process = fleet.processes.pop(parent)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert [(a.status_code, a.json()["instance"]) for a in answers] == [(200, "unit-0"), (200, "unit-1")]
    assert {(w["instance"], w["state"], w["running"], w["concurrency"]) for w in listed} == {
        ("unit-0", "running", 0, 100), ("unit-1", "running", 0, 100),
    }  # fmt: skip
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"child_started", "worker_started", "worker_stopped"} <= {line["event"] for line in lines}
    assert {line["instance"] for line in lines if line["event"] == "worker_started"} == {"unit-0", "unit-1"}


@pytest.mark.parametrize("processes", [1, 2])
def test_a_port_that_is_taken_is_refused_the_same_with_one_process_and_with_several(
    on_file: Fleet, processes: int
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        first = str(port - processes + 1)
        done = command(
            on_file, "worker", "--processes", str(processes), "--metrics-host", "127.0.0.1", "--metrics-port", first
        )
    said = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert done.code == 2
    assert len(said) == 1
    assert said[0].startswith(f"error: PLAITA_METRICS_PORT: 127.0.0.1:{port} cannot be listened on: ")


def test_children_that_never_get_ready_end_the_parent_with_the_reason(on_file: Fleet, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('no database here')\n")
    done = command(on_file, "worker", "--processes", "2", "--import", str(broken))
    assert done.code == 1
    assert "3 worker processes in a row ended before they took anything: exit code 4" in done.err
    assert "no database here" in done.err
