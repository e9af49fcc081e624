"""A hundred thousand executions that wait: what they take on the server, how fast one event wakes them all.

Once with what Redis shows programs of the published system of each, once without.
"""

from __future__ import annotations

import asyncio
import time

from bench.beside import AOF
from bench.crew import Crew
from plaita import Flow
from plaita.backends.limits import Limits
from tests.servers import redis_server

COUNT = 100_000
SHOWN = {"all": Limits(), "none": Limits(mirrored=False)}
WAITS = "plaita:runs:status:suspended"
LONG_US = 500
"""Commands that take longer are looked at."""


def _flow() -> Flow:
    nodes = [
        {"type": "start", "id": "s", "next": "w"},
        {"type": "event", "id": "w", "event_type": "go", "next": "e"},
        {"type": "end", "id": "e"},
    ]
    return Flow.model_validate({"flow_id": "waits", "nodes": nodes})


async def _measure(url: str, limits: Limits) -> list[str]:
    async with Crew(url, limits=limits) as crew:
        flow, client = _flow(), crew.client
        client.config_set("slowlog-log-slower-than", LONG_US)
        await crew.start(flow, [{}])
        await crew.until(lambda: int(client.zcard(WAITS)) == 1)
        before, started = int(client.info("memory")["used_memory"]), time.perf_counter()
        await crew.start(flow, [{}] * COUNT, first=1)
        await crew.until(lambda: int(client.zcard(WAITS)) == COUNT + 1)
        held = time.perf_counter() - started
        kept = (int(client.info("memory")["used_memory"]) - before) / COUNT
        client.slowlog_reset()
        started = time.perf_counter()
        published = await crew.store.publish("go", "go", None, b"{}")
        while published.pending and await crew.store.carry_on(1):
            pass
        woken = time.perf_counter() - started
        await crew.completed(COUNT + 1)
        ended = time.perf_counter() - started
        longest = max((entry["duration"] for entry in client.slowlog_get(128)), default=LONG_US)
    return [
        f"  {COUNT} executions start and wait: {COUNT / held:8.0f} /s, {kept:.0f} bytes each on the server",
        f"  one event wakes all in {woken:6.2f} s; all have ended after {ended:6.2f} s, one worker process",
        f"  longest command from the event to the end: {longest / 1e3:.1f} ms",
    ]


def run() -> list[str]:
    """The lines of the report."""
    lines = []
    for name, limits in SHOWN.items():
        with redis_server(*AOF) as url:
            lines += [
                f"waiting executions on Redis, AOF everysec, one run, documented keys: {name}",
                *asyncio.run(_measure(url, limits)),
            ]
    return lines
