"""The documented programs as processes on a Redis where an installation of the published system was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from plaita.server.flow_worker import FlowWorker
from plaita.server.task_queue import enqueue_task
from plaita.storage import RedisExecutionStorage, RedisFlowStorage
from tests.support.fleet import wait_until
from tests.support.published import restore

STREAM = "jobs"

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as found:
        restore(found)
        yield found


@contextmanager
def program(name: str, folder: Path, *flags: str) -> Iterator[subprocess.Popen[str]]:
    """A program of the server, stopped with SIGTERM; it must end in order."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("PLAITA_")}
    command = [sys.executable, "-m", f"plaita.server.{name}", *flags]
    process = subprocess.Popen(command, cwd=folder, env=environ, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.terminate()
        assert process.wait() == 0


def status(client: Any, execution_id: str) -> str:
    row = client.get(f"plaita:execution:{execution_id}")
    return "absent" if row is None else str(json.loads(row)["status"])


def say(client: Any, execution_id: str) -> int:
    """Publish the event an execution of the flow ``paid`` waits for; how many listened."""
    event = {
        "event_id": f"paid-{execution_id}", "event_type": "paid", "data": {"by": "ann"}, "timestamp": 0.0,
        "correlation_id": execution_id, "tenant_id": "default",
    }  # fmt: skip
    heard: int = client.publish("plaita:events:paid", json.dumps(event))
    return heard


def test_a_worker_serves_producers_publishers_and_consoles_of_the_documented_layout(
    client: Any, redis_url: str, tmp_path: Path
) -> None:
    with program("flow_worker", tmp_path, "--redis-url", redis_url, f"--queue-name={STREAM}", "--quiet"):
        task = {"type": "start", "flow_id": "paid", "version": "1", "execution_id": "new", "params": {"a": 1, "b": 1}}
        enqueue_task(client, STREAM, task)
        wait_until(lambda: status(client, "new") == "suspended", "it waits")
        assert say(client, "new") == 1
        wait_until(lambda: status(client, "new") == "completed", "it ends")
        assert client.xlen(STREAM) == 0


def test_an_event_filter_serves_publishers_where_no_worker_runs(client: Any, redis_url: str, tmp_path: Path) -> None:
    executions, flows = RedisExecutionStorage(client=client), RedisFlowStorage(client=client)
    worker = FlowWorker(executions, flows)
    with program("event_filter", tmp_path, "--redis-url", redis_url):
        assert worker.start_flow("paid", {"a": 1, "b": 2}, execution_id="new")["is_suspend"]
        wait_until(lambda: say(client, "new"), "it listens")

        def given() -> bool:
            return bool(worker.resume_flow("paid", "new", "continue").get("is_end"))

        wait_until(given, "the event reaches the execution")
    state = executions.load_execution_state("new")
    assert state is not None
    assert state.output == {"sum": 3, "by": "ann"}
    executions.close()
    flows.close()
