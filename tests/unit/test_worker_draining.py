"""A worker that is told to stop while its store is away: it leaves soon, unless what was done would be lost."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from plaita import Flow, Node
from plaita.backends.memory import MemoryBackend
from plaita.base.errors import Unavailable
from plaita.control.starting import StartOptions, start_flow
from plaita.node.registry import get_default_registry
from plaita.ports.inbox import Accepted
from plaita.ports.processes import Facts, Process, State
from plaita.ports.runs import SettleAnswer, Step
from plaita.ports.values import RunId
from plaita.server.worker import Surroundings, Worker, WorkerOptions
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


class Silent(MemoryBackend):
    """Once it is asked to, it answers nothing any more, whatever it is asked."""

    def __init__(self, from_state: State | None = None) -> None:
        """``from_state``: it is silent from when it hears that a worker is in it."""
        super().__init__()
        self.silent, self.asked, self.from_state = False, asyncio.Event(), from_state
        self.heard: list[State] = []

    async def _answer(self) -> None:
        if self.silent:
            self.asked.set()
            await asyncio.get_running_loop().create_future()

    async def accept(self, n: int) -> list[Accepted]:
        await self._answer()
        return await super().accept(n)

    async def announce(self, process: Process) -> bool:
        self.heard.append(process.facts.state)
        self.silent = self.silent or process.facts.state == self.from_state
        await self._answer()
        return await super().announce(process)

    async def settle(self, step: Step) -> SettleAnswer:
        await self._answer()
        return await super().settle(step)

    async def release(self, holder: str) -> int:
        await self._answer()
        return await super().release(holder)

    async def withdraw(self, holder: str) -> None:
        await self._answer()
        await super().withdraw(holder)


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


@pytest.mark.parametrize("runs", [0, 1])
async def test_a_store_that_hangs_keeps_no_worker_that_leaves(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plaita.server.worker.worker.FAREWELL_S", 0.05)
    store, stop = Silent(), asyncio.Event()
    get_default_registry().register(Bump)
    ready, options = asyncio.Event(), WorkerOptions(drain_ms=50, facts=Facts("w-1"), poll_ms=10)
    working = asyncio.create_task(Worker(store, options, Surroundings(ready=ready.set)).run(stop))
    await ready.wait()
    if runs:
        await start_flow(store, Flow.model_validate(chain({"id": "b", "type": "drained_bump"})), {}, OPTIONS)
    store.silent = True
    await store.asked.wait()
    stop.set()
    async with asyncio.timeout(ENOUGH_S):
        await working


@pytest.mark.parametrize(
    ("state", "heard"),
    [("running", ["starting", "running", "draining"]), ("draining", ["starting", "running", "draining"])],
)
async def test_a_store_that_hangs_is_told_no_further_state(
    state: State, heard: list[State], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaita.server.worker.worker.FAREWELL_S", 0.05)
    store, stop = Silent(state), asyncio.Event()
    ready = asyncio.Event()
    worker = Worker(store, WorkerOptions(drain_ms=50, facts=Facts("w-1"), poll_ms=10), Surroundings(ready=ready.set))
    working = asyncio.create_task(worker.run(stop))
    async with asyncio.timeout(ENOUGH_S):
        await ready.wait()
        stop.set()
        await working
    assert (store.heard, worker.presence.state) == (heard, "stopped")
