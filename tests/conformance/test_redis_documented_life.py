"""From a message of a documented producer to what operators find in the end, with a worker at work in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
import redis

from plaita import Flow
from plaita.backends.redis import RedisBackend
from plaita.control.starting import publish
from plaita.ports.values import RunId
from plaita.server.task_queue import enqueue_task
from plaita.server.worker import Worker, WorkerOptions

QUEUE, ROW = "plaita:flow:queue", "plaita:execution:r1"
OFTEN_MS = 10
SELDOM_MS = 600_000
DOUBLING = {
    "flow_id": "doubling", "version": "3",
    "nodes": [{"type": "start", "id": "s", "next": "e"}, {"type": "end", "id": "e", "output": "$( $INPUT.x * 2 )"}],
}  # fmt: skip
FAILING = {
    "flow_id": "failing",
    "nodes": [
        {"type": "start", "id": "s", "next": "split"},
        {"type": "assignment", "id": "split", "output": "$( 1 / $INPUT.x )", "next": "e"},
        {"type": "end", "id": "e"},
    ],
}  # fmt: skip


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@pytest_asyncio.fixture
async def store(redis_url: str) -> AsyncIterator[RedisBackend]:
    found = RedisBackend(redis_url)
    for document in (DOUBLING, FAILING):
        await publish(found, Flow.model_validate(document))
    yield found
    await found.close()


async def work(store: RedisBackend, server: redis.Redis, task: dict[str, Any], poll_ms: int = OFTEN_MS) -> None:
    """Send a task to a worker that has nothing to do, and wait until its execution has ended."""
    stop = asyncio.Event()
    worker = Worker(store, WorkerOptions(poll_ms=poll_ms))
    working = asyncio.create_task(worker.run(stop))
    while not (await store.living() and server.exists(QUEUE)):
        await worker.changed(OFTEN_MS)
    enqueue_task(server, QUEUE, task)
    while (view := await store.run(RunId("r1"))) is None or view.ended_ms is None:
        await worker.changed(OFTEN_MS)
    stop.set()
    await working


def start(flow_id: str, x: int) -> dict[str, Any]:
    return {"type": "start", "flow_id": flow_id, "execution_id": "r1", "params": {"x": x}, "tenant_id": "default"}


async def test_a_task_is_carried_out_and_its_row_says_so(store: RedisBackend, server: redis.Redis) -> None:
    await work(store, server, start("doubling", 21))
    row = json.loads(str(server.get(ROW)))
    view = await store.run(RunId("r1"))
    assert view is not None
    assert view.output == b"42"
    assert (row["status"], row["flow_version"], row["error"]) == ("completed", "3", None)
    assert server.xlen(QUEUE) == 0
    assert not server.exists("plaita:execution:lease:r1")


async def test_a_task_wakes_a_worker_that_sleeps(store: RedisBackend, server: redis.Redis) -> None:
    await work(store, server, start("doubling", 21), poll_ms=SELDOM_MS)
    assert json.loads(str(server.get(ROW)))["status"] == "completed"


async def test_the_row_of_a_failure_names_code_type_and_node(store: RedisBackend, server: redis.Redis) -> None:
    await work(store, server, start("failing", 0))
    row = json.loads(str(server.get(ROW)))
    assert row["status"] == "error"
    assert row["error"]["failed_node"] == "split"
    assert row["error"].keys() >= {"message", "code", "error_type"}
    assert row["end_time"] >= row["start_time"]


async def test_what_is_left_of_a_deleted_execution_are_tombstone_and_generation(
    store: RedisBackend, server: redis.Redis
) -> None:
    await work(store, server, start("failing", 0))
    await store.delete(RunId("r1"))
    left = {name for name in server.scan_iter() if "r1" in name}
    assert left == {"plaita:exec_tombstone:r1", "plaita:execution:fencegen:r1", "plaita:grave:r1"}
