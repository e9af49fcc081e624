"""How long the executions of a worker that is gone wait for another, and whether any changes hands without need."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable

from bench.beside import AOF
from bench.crew import Crew
from bench.nodes import BUSY_S
from plaita import Flow
from tests.servers import redis_server

HELD = 80
"""Executions held by two workers, in the middle of a node."""
APART_S = 0.02
"""They are started one after the other, so that both workers get some."""
AWAY_S = 15.0
"""How long the server does not answer: longer than a lease."""


def _flow() -> Flow:
    nodes = [
        {"type": "start", "id": "s", "next": "b"},
        {"type": "busy", "id": "b", "next": "c"},
        {"type": "busy", "id": "c", "next": "e"},
        {"type": "end", "id": "e"},
    ]
    return Flow.model_validate({"flow_id": "held", "nodes": nodes})


def _generations(crew: Crew) -> list[int]:
    """How often each execution was claimed, as the documented key tells it."""
    return [int(g or 0) for g in crew.client.mget([f"plaita:execution:fencegen:r{i}" for i in range(HELD)])]


async def _all_held(crew: Crew) -> None:
    for i in range(HELD):
        await crew.start(_flow(), [{}], first=i)
        await asyncio.sleep(APART_S)
    await crew.until(lambda: all(g == 1 for g in _generations(crew)))


async def _taken_over(crew: Crew, kill: Callable[[], None]) -> float:
    """Seconds from the end of a worker until the last of its executions is held by another."""
    await _all_held(crew)
    kill()
    killed = time.perf_counter()
    last, taken = killed, 0
    while time.perf_counter() - killed < BUSY_S + 5:
        found = sum(g > 1 for g in _generations(crew))
        if found > taken:
            last, taken = time.perf_counter(), found
        await asyncio.sleep(0.005)
    if not taken:
        raise RuntimeError("the worker that was killed held nothing")
    return last - killed


async def _apart(url: str) -> float:
    """Two workers that know nothing of each other, as on two machines."""
    async with Crew(url, 2) as crew:
        return await _taken_over(crew, lambda: crew.workers.pop().kill())


async def _supervised(url: str) -> float:
    """Two workers with one supervisor."""
    async with Crew(url, 2, supervised=True) as crew:
        child = crew.children()[0]
        return await _taken_over(crew, lambda: os.kill(child, signal.SIGKILL))


async def _without_need(url: str) -> int:
    """Executions that changed hands although their worker lived: the server was stopped for a while."""
    async with Crew(url, 2) as crew:
        await _all_held(crew)
        server = int(crew.client.info("server")["process_id"])
        os.kill(server, signal.SIGSTOP)
        await asyncio.sleep(AWAY_S)
        os.kill(server, signal.SIGCONT)
        await crew.completed(HELD)
        return sum(g > 1 for g in _generations(crew))


def run() -> list[str]:
    """The lines of the report."""
    with redis_server(*AOF) as url:
        return [
            f"takeover, two workers with {HELD} executions in the middle of a node, leases of 10 s, one run each",
            f"  kill -9 of a worker on its own: the last is taken over after {asyncio.run(_apart(url)):5.2f} s",
            f"  kill -9 of a supervised child:  the last is taken over after {asyncio.run(_supervised(url)):5.2f} s",
            f"  Redis does not answer for {AWAY_S:.0f} s: {asyncio.run(_without_need(url))} taken over without need",
        ]
