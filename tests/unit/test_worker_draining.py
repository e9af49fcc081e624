"""A worker that is told to stop while its store is away: it leaves soon, unless what was done would be lost."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from plaita import Flow, Node
from plaita.backends.memory import MemoryBackend
from plaita.base.errors import Unavailable
from plaita.control.starting import StartOptions, start_flow
from plaita.node.registry import get_default_registry
from plaita.ports.runs import SettleAnswer, Step
from plaita.ports.values import RunId
from plaita.server.worker import Worker, WorkerOptions
from tests.support.flows import chain

RUN = RunId("r1")
OPTIONS = StartOptions(execution_id=RUN)
PATIENT_MS = 600_000
ENOUGH_S = 15.0
LONG_AWAY = 8
"""Failures after which nobody waits who has nothing to lose."""


class Bump(Node):
    """Counts how often it is called."""

    node_type: ClassVar[str] = "drained_bump"
    calls: ClassVar[int] = 0

    async def arun(self, execution: Any) -> int:
        Bump.calls += 1
        return Bump.calls


class Away(MemoryBackend):
    """Takes ``healthy`` settles, and is away for the next ``failures``."""

    def __init__(self, healthy: int, failures: float) -> None:
        super().__init__()
        self.healthy, self.failures, self.failed = healthy, failures, asyncio.Event()

    async def settle(self, step: Step) -> SettleAnswer:
        if self.healthy or not self.failures:
            self.healthy = max(0, self.healthy - 1)
            return await super().settle(step)
        self.failures -= 1
        self.failed.set()
        raise Unavailable("away")


async def drained(store: Away) -> None:
    """A worker that is told to stop once the store is away, and has ten minutes to drain."""
    get_default_registry().register(Bump)
    Bump.calls = 0
    await start_flow(store, Flow.model_validate(chain({"id": "b", "type": "drained_bump"})), {}, OPTIONS)
    stop = asyncio.Event()
    working = asyncio.create_task(Worker(store, WorkerOptions(drain_ms=PATIENT_MS)).run(stop))
    await store.failed.wait()
    stop.set()
    async with asyncio.timeout(ENOUGH_S):
        await working


async def test_a_worker_with_nothing_to_lose_leaves_without_the_store_and_the_next_one_goes_on() -> None:
    store = Away(healthy=0, failures=float("inf"))
    await drained(store)
    assert Bump.calls == 0
    store.failures = 0
    [claim] = await store.claim("another.0", 1)
    assert (claim.header.run_id, claim.header.seq) == (RUN, 0)


async def test_what_a_call_brought_back_is_kept_for_the_store_as_long_as_the_worker_may_drain() -> None:
    store = Away(healthy=1, failures=LONG_AWAY)
    await drained(store)
    [told] = [entry for entry in await store.history(RUN) if b'"node_end"' in entry.data]
    assert (Bump.calls, b'"output":1' in told.data) == (1, True)
