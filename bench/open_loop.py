"""How long things take while a worker is half and nearly fully loaded: requests arrive at a rate, whoever is slow.

A worker process runs beside Redis and this process. Times of nodes are read on the machine's monotonic clock, which all
processes share.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from itertools import pairwise
from typing import Any

from bench.beside import AOF
from bench.crew import Crew
from bench.nodes import BUSY_S
from plaita import Flow
from plaita.control.starting import StartOptions, start_flow
from tests.servers import redis_server

CAPACITY, SECONDS = 3_000, 5.0
"""Executions of the burst that finds the capacity; how long a load lasts."""
LOADS = (0.5, 0.9)
HELD = 80
"""Executions that a worker holds while they are told something."""


def _document(name: str, *nodes: dict[str, Any], output: str) -> dict[str, Any]:
    chained: list[dict[str, Any]] = [{"id": "start", "type": "start"}, *nodes, {"id": "end", "type": "end"}]
    for node, following in pairwise(chained):
        node["next"] = following["id"]
    chained[-1]["output"] = output
    return {"flow_id": name, "nodes": chained}


def _assignments(count: int) -> list[dict[str, Any]]:
    return [{"id": f"a{i}", "type": "assignment", "output": i} for i in range(count)]


def loaded() -> Flow:
    """Five nodes, the first of which says when it began."""
    return Flow.model_validate(_document("loaded", {"id": "m", "type": "mark"}, *_assignments(4), output="$NODE.m"))


def waiting() -> Flow:
    """Waits for an event of its own topic, then says when it went on."""
    return Flow.model_validate(_waiting())


def divided() -> Flow:
    """One branch is busy, so that the execution is held; the other waits for an event."""
    branches = [
        {"name": "busy", "flow": _document("busy", {"id": "b", "type": "busy"}, output="$NODE.b")},
        {"name": "asked", "flow": _waiting()},
    ]
    node = {"id": "p", "type": "parallel", "branches": branches}
    return Flow.model_validate(_document("divided", node, output="$NODE.p.asked"))


def _waiting() -> dict[str, Any]:
    wait = {"id": "w", "type": "event", "event_type": "$INPUT.topic"}
    return _document("waiting", wait, {"id": "m", "type": "mark"}, output="$NODE.m")


async def _paced(rate: float, count: int, send: Any) -> list[float]:
    """When each of ``count`` requests was due; ``send`` starts one and is not waited for."""
    began, due, sent = time.perf_counter(), [], []
    for i in range(count):
        due.append(began + i / rate)
        await asyncio.sleep(max(0.0, due[-1] - time.perf_counter()))
        sent.append(asyncio.ensure_future(send(i)))
    await asyncio.gather(*sent)
    return due


async def _capacity(url: str) -> float:
    async with Crew(url) as crew:
        started = time.perf_counter()
        await crew.start(loaded(), [{}] * CAPACITY)
        await crew.completed(CAPACITY)
        return CAPACITY / (time.perf_counter() - started)


async def _first_step(url: str, rate: float) -> list[float]:
    """Seconds from when a start was due until its first node began."""
    async with Crew(url) as crew:
        flow, count = loaded(), int(rate * SECONDS)

        async def send(i: int) -> None:
            await start_flow(crew.store, flow, {}, StartOptions(execution_id=f"r{i}"))

        due = await _paced(rate, count, send)
        await crew.completed(count)
        return [began - asked for began, asked in zip(await crew.outputs(count), due, strict=True)]


async def _resumed(url: str, rate: float) -> list[float]:
    """Seconds from when an event was due until the node behind its wait began."""
    return await _told(url, waiting(), rate, int(rate * SECONDS))


async def _moving(url: str) -> list[float]:
    """The same while another branch of each execution is busy and their worker holds them all."""
    return await _told(url, divided(), 2 * HELD / BUSY_S, HELD)


async def _told(url: str, flow: Flow, rate: float, count: int) -> list[float]:
    async with Crew(url) as crew:
        await crew.start(flow, [{"topic": f"t{i}"} for i in range(count)])
        await crew.until(lambda: all(crew.client.exists(f"plaita:wtype:t{i}") for i in range(count)))

        async def send(i: int) -> None:
            await crew.store.publish(f"e{i}", f"t{i}", None, b"{}")

        due = await _paced(rate, count, send)
        await crew.completed(count)
        return [began - asked for began, asked in zip(await crew.outputs(count), due, strict=True)]


def _ms(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return f"p50 {1e3 * statistics.median(ordered):7.2f} ms   p99 {1e3 * ordered[len(ordered) * 99 // 100]:7.2f} ms"


def run() -> list[str]:
    """The lines of the report."""
    lines = ["latencies under load, one worker process, Redis with AOF everysec, one run each"]
    with redis_server(*AOF) as url:
        capacity = asyncio.run(_capacity(url))
        lines.append(f"  capacity with this process as its client: {capacity:.0f} five-node executions/s")
        for load in LOADS:
            rate = load * capacity
            lines += [
                f"  {100 * load:.0f} % ({rate:.0f}/s) start to first node:  {_ms(asyncio.run(_first_step(url, rate)))}",
                f"  {100 * load:.0f} % ({rate:.0f}/s) event to next node:   {_ms(asyncio.run(_resumed(url, rate)))}",
            ]
        lines.append(f"  {HELD} executions held, an event to the next node of each: {_ms(asyncio.run(_moving(url)))}")
    return lines
