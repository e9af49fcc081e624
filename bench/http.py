"""Requests of ``http`` nodes: many at once in one worker, and what a call costs beside a bare client doing the same."""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.queues import Queue
from typing import Any

import httpx

from plaita import Flow
from plaita.app import worker_options
from plaita.backends.memory import MemoryBackend
from plaita.control.starting import StartOptions, start_flow
from plaita.server.worker import Worker
from plaita.settings import Settings
from tests.support.http_stub import as_json, serving

AT_ONCE = (1, 50, 500)
REQUESTS = 2_000
BARE_REQUESTS = 600
"""httpx takes ten times as long with many connections."""


def _serve(ports: Queue[int], stop: Queue[int]) -> None:
    with serving(lambda _: as_json({"ok": True, "n": 1, "text": "some text"})) as stub:
        ports.put(stub.port)
        stop.get()


@contextmanager
def _server() -> Iterator[str]:
    """A server in another process, and its URL."""
    context = multiprocessing.get_context("spawn")
    ports: Queue[int] = context.Queue()
    stop: Queue[int] = context.Queue()
    process = context.Process(target=_serve, args=(ports, stop))
    process.start()
    try:
        yield f"http://127.0.0.1:{ports.get(timeout=60)}/orders"
    finally:
        stop.put(0)
        process.join()


def one_request(url: str) -> Flow:
    """start -> http -> end."""
    nodes: list[dict[str, Any]] = [
        {"type": "start", "id": "s", "next": "h"},
        {"type": "http", "id": "h", "url": url, "query": {"n": "$INPUT.n"}, "next": "e"},
        {"type": "end", "id": "e", "output": "$NODE.h.data"},
    ]
    return Flow.model_validate({"flow_id": "request", "nodes": nodes})


async def _spread(one: Callable[[int], Awaitable[object]], at_once: int, requests: int) -> None:
    numbers = iter(range(requests))

    async def several() -> None:
        for n in numbers:
            await one(n)

    await asyncio.gather(*(several() for _ in range(at_once)))


async def _bare(url: str, at_once: int, requests: int) -> tuple[float, float]:
    """Seconds and CPU seconds of httpx alone, its connections open already."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(trust_env=False, limits=limits, timeout=None) as client:

        async def one(n: int) -> object:
            answer = await client.get(url, params={"n": n})
            return answer.json()

        await _spread(one, at_once, at_once)
        return await _timed(_spread(one, at_once, requests))


async def _plain(flow: Flow, at_once: int, requests: int) -> tuple[float, float]:
    """The same through ``Flow.arun``."""
    await _spread(lambda n: flow.arun(n=n), at_once, at_once)
    return await _timed(_spread(lambda n: flow.arun(n=n), at_once, requests))


async def _worker(flow: Flow, at_once: int, requests: int) -> tuple[float, float]:
    """The same as executions of one worker, ``at_once`` of them in flight; stored in memory."""
    store = MemoryBackend()
    for n in range(requests):
        await start_flow(store, flow, {"n": n}, StartOptions(execution_id=f"r{n}"))
    worker, stop = Worker(store, replace(worker_options(Settings()), concurrency=at_once)), asyncio.Event()

    async def drive() -> None:
        working = asyncio.create_task(worker.run(stop))
        while (await store.runs(status="queued", limit=1))[0] or (await store.runs(status="running", limit=1))[0]:
            await worker.changed(1_000)
        stop.set()
        await working

    taken = await _timed(drive())
    failed, _ = await store.runs(status="error", limit=1)
    assert not failed
    return taken


async def _timed(work: Awaitable[object]) -> tuple[float, float]:
    started, cpu = time.perf_counter(), time.process_time()
    await work
    return time.perf_counter() - started, time.process_time() - cpu


def _each(taken: tuple[float, float], requests: int) -> tuple[float, float]:
    return taken[0] / requests, taken[1] / requests


def run(rounds: int = 5) -> list[str]:
    """The lines of the report."""
    lines = [
        f"http nodes, us a request (median of {rounds}, interleaved; CPU of the sending process)",
        f"  {'at once':>8} {'httpx':>8} {'arun':>8} {'worker':>8} {'arun / httpx':>13} {'worker /s':>10}",
    ]
    with _server() as url:
        flow = one_request(url)
        for at_once in AT_ONCE:
            found: dict[str, list[tuple[float, float]]] = {"bare": [], "plain": [], "worker": []}
            for _ in range(rounds):
                found["bare"].append(_each(asyncio.run(_bare(url, at_once, BARE_REQUESTS)), BARE_REQUESTS))
                found["plain"].append(_each(asyncio.run(_plain(flow, at_once, REQUESTS)), REQUESTS))
                found["worker"].append(_each(asyncio.run(_worker(flow, at_once, REQUESTS)), REQUESTS))
            cpu = {name: 1e6 * statistics.median(c for _, c in took) for name, took in found.items()}
            rate = 1 / statistics.median(seconds for seconds, _ in found["worker"])
            ratio = cpu["plain"] / cpu["bare"]
            lines.append(
                f"  {at_once:8} {cpu['bare']:8.0f} {cpu['plain']:8.0f} {cpu['worker']:8.0f} {ratio:12.2f}x {rate:10.0f}"
            )
    return lines
