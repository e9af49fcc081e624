"""From a vote in one process to the execution moving in another; measured, printed in the summary."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from plaita import Flow
from plaita.node.registry import get_default_registry
from tests.support.fleet import Fleet, lines_of, wait_until
from tests.support.outside import Append

VOTES = 40


@pytest.mark.timeout(60)
def test_an_execution_moves_in_its_worker_soon_after_a_vote_elsewhere(tmp_path: Path, record_property: Any) -> None:
    get_default_registry().register(Append)
    fleet = Fleet(tmp_path)
    fleet.runtime().close()
    fleet.start_worker()
    path = tmp_path / "moved"
    nodes = [
        {"type": "start", "id": "s", "next": "ok"},
        {"type": "approval", "id": "ok", "approval_title": "?", "next": "n"},
        {"type": "append", "id": "n", "path": str(path), "next": "e"},
        {"type": "end", "id": "e"},
    ]
    flow = Flow.model_validate({"flow_id": "vote", "nodes": nodes})
    with fleet.runtime() as runtime:
        for _ in range(VOTES):
            runtime.start(flow)
        tasks = wait_until(lambda: len(found := runtime.inbox()) == VOTES and found, "all tasks")
        for count, task in enumerate(tasks, 1):
            voted_ns = time.monotonic_ns()
            assert task.approve(by="ann") == "approved"
            wait_until(lambda n=count: len(lines_of(path)) >= n, "the execution moves")
            moved = lines_of(path)[-1]
            assert moved.pid in fleet.processes, "the worker moves it, not the voter"
            record_property("vote to move ms", (moved.at_ns - voted_ns) / 1e6)
    fleet.stop()
