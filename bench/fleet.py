"""Durable runs on Redis: executions and effectful steps a second, latencies, what a step costs.

The server runs beside the worker on this machine. The floor of a step is the same write from a client that does nothing
else: one script with the arguments of a settle, so many in flight, that stores them and checks nothing.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import redis

from bench.durable import FIVE_RUNS, IN_FLIGHT, STEP_RUNS, STEPS, effects, pure_five
from bench.nodes import Touch
from plaita import Flow, Node
from plaita.app import worker_options
from plaita.backends.redis import RedisBackend
from plaita.control.starting import StartOptions, start_flow
from plaita.node.registry import get_default_registry
from plaita.server.worker import Worker
from plaita.settings import Settings
from tests.servers import redis_server

FSYNC = {
    "off": (),
    "everysec": ("--appendonly", "yes", "--appendfsync", "everysec"),
    "always": ("--appendonly", "yes", "--appendfsync", "always"),
}
SAMPLES = 200
LONG, PART = 10_000, 1_000
"""Steps of one long execution; how many at its beginning and its end are compared."""
FLOOR = """#!lua flags=allow-oom
redis.call('HSET', KEYS[1], 'h', ARGV[1])
redis.call('HSET', KEYS[1] .. ':f', 'f', ARGV[2], 'n', ARGV[3])
redis.call('RPUSH', KEYS[1] .. ':log', ARGV[4], ARGV[5])
return 1
"""


class Began(Node):
    """Says when it began."""

    node_type: ClassVar[str] = "began"
    began: ClassVar[asyncio.Queue[float]]

    async def arun(self, execution: Any) -> dict[str, Any]:
        self.began.put_nowait(time.perf_counter())
        return {}


class Fleet:
    """A server with nothing in it, a store on it, and a worker."""

    def __init__(self, url: str, in_flight: int) -> None:
        redis.Redis.from_url(url).flushall()
        self.store = RedisBackend(url)
        options = replace(worker_options(Settings()), concurrency=in_flight)
        self.worker = Worker(self.store, options, renewal_opener=lambda: RedisBackend(url))
        self._stop = asyncio.Event()
        self._working: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Fleet:
        return self

    def begin(self) -> None:
        self._working = asyncio.create_task(self.worker.run(self._stop))

    async def drained(self) -> None:
        """Until nothing is queued or running."""
        while True:
            await self.worker.changed(1_000)
            if self.worker.running == 0:
                queued, _ = await self.store.runs(status="queued", limit=1)
                running, _ = await self.store.runs(status="running", limit=1)
                if not queued and not running:
                    break
        failed, _ = await self.store.runs(status="error", limit=1)
        assert not failed

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        if self._working is not None:
            await self._working
        await self.store.close()


async def _throughput(url: str, flow: Flow, runs: int, in_flight: int) -> float:
    """Seconds from the first claim until all runs have ended."""
    async with Fleet(url, in_flight) as fleet:
        for i in range(runs):
            await start_flow(fleet.store, flow, {"x": 0}, StartOptions(execution_id=f"r{i}"))
        started = time.perf_counter()
        fleet.begin()
        await fleet.drained()
        return time.perf_counter() - started


def _floor(url: str, steps: int, in_flight: int) -> float:
    client = redis.Redis.from_url(url)
    client.flushall()
    sha = client.script_load(FLOOR)
    value = b'[null,null,null,"n17","c","n16",null,0,[null,null,null,null],"@n17#1",[1,0.5]]'
    args = (value * 4, value, value, value, value)
    started = time.perf_counter()
    for at in range(0, steps, in_flight):
        with client.pipeline(transaction=False) as pipeline:
            for run in range(at, at + in_flight):
                pipeline.evalsha(sha, 1, f"floor:{run % in_flight}", *args)
            pipeline.execute()
    return time.perf_counter() - started


async def _lone_step(url: str, steps: int) -> list[float]:
    """Seconds from effect to effect of one execution."""
    Touch.times.clear()
    await _throughput(url, effects(steps), 1, 1)
    return [after - before for before, after in zip(Touch.times, Touch.times[1:], strict=False)]


async def _first_step(url: str) -> list[float]:
    """Seconds from the start of an execution until its first node begins, on an idle worker."""
    found = []
    async with Fleet(url, IN_FLIGHT) as fleet:
        fleet.begin()
        Began.began = asyncio.Queue()
        nodes = [
            {"type": "start", "id": "s", "next": "n"},
            {"type": "began", "id": "n", "next": "e"},
            {"type": "end", "id": "e"},
        ]
        flow = Flow.model_validate({"flow_id": "first", "nodes": nodes})
        for i in range(SAMPLES):
            sent = time.perf_counter()
            await start_flow(fleet.store, flow, {}, StartOptions(execution_id=f"r{i}"))
            found.append(await Began.began.get() - sent)
    return found


async def _resumed(url: str) -> list[float]:
    """Seconds from the publish of an event until the node after its wait begins."""
    nodes: list[dict[str, Any]] = [
        {"type": "start", "id": "s", "next": "w"},
        {"type": "event", "id": "w", "event_type": "$INPUT.topic", "next": "n"},
        {"type": "began", "id": "n", "next": "e"},
        {"type": "end", "id": "e"},
    ]
    flow = Flow.model_validate({"flow_id": "resumed", "nodes": nodes})
    found = []
    async with Fleet(url, IN_FLIGHT) as fleet:
        Began.began = asyncio.Queue()
        for i in range(SAMPLES):
            await start_flow(fleet.store, flow, {"topic": f"t{i}"}, StartOptions(execution_id=f"r{i}"))
        fleet.begin()
        await fleet.drained()
        for i in range(SAMPLES):
            sent = time.perf_counter()
            await fleet.store.publish(f"e{i}", f"t{i}", None, b"{}")
            found.append(await Began.began.get() - sent)
    return found


def _cost_of_a_step(url: str) -> str:
    """Commands and bytes of an effectful step, from the difference between long and short executions."""

    def spent(steps: int) -> dict[str, int]:
        client: Any = redis.Redis.from_url(url)
        client.flushall()
        client.config_resetstat()
        asyncio.run(_throughput(url, effects(steps), STEP_RUNS, IN_FLIGHT))
        calls = {name: value["calls"] for name, value in client.info("commandstats").items()}
        traffic = client.info("stats")
        return {
            "requests": calls.get("cmdstat_evalsha", 0) + calls.get("cmdstat_fcall", 0),
            "in": traffic["total_net_input_bytes"],
            "out": traffic["total_net_output_bytes"],
            "us": round(1e6 * client.info("cpu")["used_cpu_user"] + 1e6 * client.info("cpu")["used_cpu_sys"]),
        }

    before = spent(10)
    begun = before["us"]
    after = spent(10 + STEPS)
    steps = STEPS * STEP_RUNS
    per = {name: (after[name] - before[name]) / steps for name in ("requests", "in", "out")}
    return (
        f"{per['requests']:.2f} requests, {per['in']:.0f} bytes in, {per['out']:.0f} bytes out, "
        f"{(after['us'] - begun) / (steps + 10 * STEP_RUNS):.0f} us of the server"
    )


def _flatness(url: str) -> str:
    """A step at the beginning and at the end of a long execution."""
    steps = asyncio.run(_lone_step(url, LONG))
    first, last = statistics.median(steps[:PART]), statistics.median(steps[-PART:])
    return f"p50 {1e3 * first:.2f} ms at its beginning, {1e3 * last:.2f} ms at its end ({last / first:.2f}x)"


def _ms(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return f"p50 {1e3 * statistics.median(ordered):6.2f} ms   p99 {1e3 * ordered[len(ordered) * 99 // 100]:6.2f} ms"


def run(rounds: int = 5) -> list[str]:
    """The lines of the report."""
    get_default_registry().register(Began)
    lines = [f"durable on Redis, history on (median of {rounds}, interleaved)"]
    total = STEPS * STEP_RUNS
    for name, options in FSYNC.items():
        with redis_server(*options) as url:
            seconds: dict[str, list[float]] = {"five": [], "steps": [], "bare": []}
            for _ in range(rounds):
                seconds["five"].append(asyncio.run(_throughput(url, pure_five(), FIVE_RUNS, IN_FLIGHT)))
                seconds["steps"].append(asyncio.run(_throughput(url, effects(STEPS), STEP_RUNS, IN_FLIGHT)))
                seconds["bare"].append(_floor(url, total, IN_FLIGHT))
            s = {key: statistics.median(values) for key, values in seconds.items()}
            lines += [
                f"  AOF {name:8} five-node executions, {IN_FLIGHT} in flight: {FIVE_RUNS / s['five']:8.0f} /s",
                f"  AOF {name:8} effectful steps,      {IN_FLIGHT} in flight: {total / s['steps']:8.0f} /s   "
                f"bare scripts {total / s['bare']:8.0f} /s   {s['steps'] / s['bare']:4.1f}x the floor",
                f"  AOF {name:8} one execution alone, a step: {_ms(asyncio.run(_lone_step(url, 400)))}",
            ]
    measures: dict[str, Callable[[str], Any]] = {
        "start to first step": _first_step,
        "publish to resumed": _resumed,
    }
    with redis_server() as url:
        lines += [f"  {name}: {_ms(asyncio.run(measure(url)))}" for name, measure in measures.items()]
        lines.append(f"  a step of an execution of {LONG}: {_flatness(url)}")
        lines.append(f"  a step: {_cost_of_a_step(url)}")
    return lines
