"""A shop for the cases about workers, queues and events: a store, workers in this process, and the server they call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from plaita.base.json import encode
from plaita.core.flow import Flow
from plaita.ports.backend import Backend
from plaita.ports.values import RunId
from plaita.server.worker import Worker, WorkerOptions
from tests.support.http_stub import Reply, Seen, Stub, as_json

PATIENCE_S = 30


@dataclass
class Counter:
    """The server the cases call: counts each path, and answers as the case says."""

    drops: dict[str, int] = field(default_factory=dict)
    replies: dict[str, Reply] = field(default_factory=dict)
    slow: dict[str, asyncio.Event] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=dict)

    def answer(self, seen: Seen) -> Reply:
        name = seen.path.strip("/").split("?")[0]
        self.counts[name] = self.counts.get(name, 0) + 1
        if self.counts[name] <= self.drops.get(name, 0):
            return Reply(raw=b"", close=True)
        return self.replies.get(name, as_json({"n": self.counts[name]}))


def flow_of(given: dict[str, Any], stub: Stub) -> Flow:
    text = json.dumps(given["flow"]).replace("COUNTER", f"http://127.0.0.1:{stub.port}")
    return Flow.from_string(text)


@dataclass
class Shop:
    """A store with one published flow, and workers in this process."""

    store: Backend
    options: WorkerOptions = field(default_factory=lambda: WorkerOptions(poll_ms=20))

    async def work(self, until: Callable[[], Awaitable[bool]], workers: int = 1) -> None:
        stop, crew = asyncio.Event(), [Worker(self.store, self.options) for _ in range(workers)]
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            for worker in crew:
                group.create_task(worker.run(stop))
            while not await until():
                await crew[0].changed(10)
            stop.set()

    async def status(self, execution_id: str) -> str:
        view = await self.store.run(RunId(execution_id))
        return "absent" if view is None else view.status

    async def send(self, message_id: str, **body: Any) -> None:
        await self.store.offer(message_id, encode(body))
