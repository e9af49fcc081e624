"""Who holds a run is told at once that it has mail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest
import pytest_asyncio

from plaita import Flow, Node
from plaita.backends.redis import RedisBackend
from plaita.control.starting import StartOptions, start_flow
from plaita.node.registry import get_default_registry
from plaita.ports.runs import Keep
from plaita.ports.values import RunId
from plaita.server.worker import Worker, WorkerOptions
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.stage import RUN, WAIT, Stage, hand

PATIENCE_S = 10.0
LATE_MS = 600_000


@pytest_asyncio.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    clock = HandClock()
    store = RedisBackend(redis_url, clock)
    yield Stage(store, clock)
    await store.close()


@pytest.mark.parametrize("verb", ["wake", "cancel"])
async def test_an_answer_and_a_cancel_call_the_holder(stage: Stage, verb: str) -> None:
    named: asyncio.Queue[RunId] = asyncio.Queue()
    await stage.settle(await stage.hold(), Keep(), arms=(hand(),))
    assert stage.backend.on_mail(named.put_nowait)
    await stage.backend.hint(LATE_MS)
    if verb == "wake":
        await stage.backend.wake(RUN, WAIT, b"1")
    else:
        await stage.backend.cancel(RUN)
    async with asyncio.timeout(PATIENCE_S):
        assert await named.get() == RUN


class Busy(Node):
    """Goes on until it is told to stop."""

    node_type: ClassVar[str] = "busy_until_told"
    stop: ClassVar[asyncio.Event]

    async def arun(self, execution: Any) -> str:
        await self.stop.wait()
        return "told"


FLOW = {
    "flow_id": "beside",
    "nodes": [
        {"type": "start", "id": "s", "next": "p"},
        {
            "type": "parallel",
            "id": "p",
            "branches": [
                {"name": "work", "childFlow": {"nodes": [
                    {"type": "start", "id": "s", "next": "n"},
                    {"type": "busy_until_told", "id": "n", "next": "e"},
                    {"type": "end", "id": "e"},
                ]}},
                {"name": "ask", "childFlow": {"nodes": [
                    {"type": "start", "id": "s", "next": "w"},
                    {"type": "event", "id": "w", "event_type": "go", "next": "e"},
                    {"type": "end", "id": "e"},
                ]}},
            ],
            "next": "e",
        },
        {"type": "end", "id": "e"},
    ],
}  # fmt: skip


async def test_a_worker_without_a_free_place_reads_mail_long_before_it_renews(redis_url: str) -> None:
    get_default_registry().register(Busy)
    Busy.stop = asyncio.Event()
    store = RedisBackend(redis_url)
    worker = Worker(store, WorkerOptions(concurrency=1, renew_ms=LATE_MS))
    stop = asyncio.Event()
    working = asyncio.create_task(worker.run(stop))
    await start_flow(store, Flow.model_validate(FLOW), {}, StartOptions(execution_id="r"))
    async with asyncio.timeout(PATIENCE_S):
        while not await store.waits(RunId("r")):
            await store.hint(50)
        await store.publish("e1", "go", None, b"{}")
        while await store.waits(RunId("r")):
            await store.hint(50)
    Busy.stop.set()
    stop.set()
    await working
    await store.close()
