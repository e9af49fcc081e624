"""The processes of a script end with whatever wanted their result: a killed worker, a cancelled execution, a drain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fleet import Fleet, command, wait_until
from tests.support.scripts import is_alive, pids_in

SLEEPER = """
import os, subprocess, threading
def run(d):
    child = subprocess.Popen(["sleep", "600"])
    with open(d["path"], "a") as file:
        file.write(f"{os.getppid()}\\n{os.getpid()}\\n{child.pid}\\n")
    threading.Event().wait()
"""


class Hasty(Fleet):
    """Workers that give running nodes no time."""

    @property
    def environ(self) -> dict[str, str]:
        return {**super().environ, "PLAITA_WORKER_DRAIN_TIMEOUT": "0"}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, ("--lease-ttl-seconds", "3"))
    fleet.runtime().close()
    yield fleet
    fleet.stop()


def start(fleet: Fleet, **fields: Any) -> tuple[str, Path]:
    """Start an execution of a script that sleeps; its id, and the file with the ids of its processes."""
    path = fleet.folder / "pids"
    nodes = [
        {"type": "start", "id": "s", "next": "a"},
        {"type": "code", "id": "a", "code": SLEEPER, "input": {"path": str(path)}, "next": "e", **fields},
        {"type": "end", "id": "e"},
    ]
    document = fleet.folder / "flow.json"
    document.write_text(json.dumps({"flow_id": "t", "nodes": nodes}))
    answer = command(fleet, "start", str(document), "--json")
    assert answer.code == 0, answer
    return answer.json["execution_id"], path


def running(path: Path) -> list[int]:
    found: list[int] = wait_until(lambda: pids_in(path, 3), "the script runs")
    assert all(map(is_alive, found))
    return found


def gone(pids: list[int]) -> None:
    wait_until(lambda: not any(map(is_alive, pids)), "every process of the script is gone")


def test_a_killed_worker_leaves_no_process_of_a_script_behind(fleet: Fleet) -> None:
    worker = fleet.start_worker()
    _, path = start(fleet)
    pids = running(path)
    fleet.kill(worker)
    gone(pids)


def test_cancelling_an_execution_ends_the_script_it_runs(fleet: Fleet) -> None:
    fleet.start_worker()
    execution, path = start(fleet)
    pids = running(path)
    assert command(fleet, "cancel", execution).code == 0
    gone(pids)
    with fleet.runtime() as runtime:
        assert runtime.execution(execution).inspect()["status"] == "cancelled"


def test_a_timeout_in_a_worker_ends_the_script_and_what_it_has_started(fleet: Fleet) -> None:
    fleet.start_worker()
    execution, path = start(fleet, timeout=2000)
    gone(running(path))
    with fleet.runtime() as runtime:
        shape = wait_until(lambda: _ended(runtime.execution(execution).inspect()), "the execution ends")
    assert shape["error"]["kind"] == "timeout"


def _ended(shape: dict[str, Any]) -> dict[str, Any] | None:
    return shape if shape["end_time"] is not None else None


def test_a_worker_that_is_told_to_stop_at_once_takes_its_scripts_with_it(fleet: Fleet) -> None:
    worker = Hasty(fleet.folder, processes=fleet.processes).start_worker()
    _, path = start(fleet)
    pids = running(path)
    fleet.processes[worker].terminate()
    gone(pids)
