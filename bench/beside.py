"""Bursts of short and long executions, here and in other systems, with one and with two worker processes.

A burst is measured by whoever sends it, from the first start until the last execution has ended, so it contains the
sending. A step of a peer is one durable task or step that adds one; here it is an effectful node, and "assignments" are
the published package's own flow, whose nodes have no effect to keep.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from bench import flows
from bench.crew import Crew
from bench.durable import effects
from bench.environments import PEERS, interpreter
from bench.subjects import peer_python
from plaita import Flow
from tests.servers import redis_over_tcp

WARM = 20
PEERS_OF = {
    "published worker": "assignments",
    "Celery chain": "effectful nodes",
    "Huey pipeline": "effectful nodes",
    "DBOS on SQLite": "effectful nodes",
}
"""What of ours does the same work as a peer."""
AOF = ("--appendonly", "yes", "--appendfsync", "everysec")


@dataclass(frozen=True)
class System:
    """``counts``: executions of 5 and of 100 steps in a burst; ``most`` worker processes at most."""

    name: str
    burst: Callable[[str, int, int, int], float]
    counts: tuple[int, int]
    most: int = 2


def ours(document: Callable[[int], Flow]) -> Callable[[str, int, int, int], float]:
    """Bursts of this project."""

    async def burst(url: str, steps: int, count: int, processes: int) -> float:
        flow = document(steps)
        async with Crew(url, processes) as crew:
            await crew.start(flow, [{"x": 0}] * WARM)
            await crew.completed(WARM)
            started = time.perf_counter()
            await crew.start(flow, [{"x": 0}] * count, first=WARM)
            await crew.completed(WARM + count)
            return time.perf_counter() - started

    return lambda *arguments: asyncio.run(burst(*arguments))


class Peer:
    """A program of ``bench/peers`` in the environment of its system, with a server of its own."""

    def __init__(self, program: str, python: str, url: str) -> None:
        self._process = subprocess.Popen(
            [python, str(PEERS / program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "BENCH_REDIS": url},
            cwd=PEERS,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def burst(self, **request: Any) -> float:
        """Seconds; see the program."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps({"do": "burst", **request}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args} ended")
        return float(json.loads(line)["answer"])


def peer(program: str, python: str, **more: Callable[[int], Any]) -> Callable[[str, int, int, int], float]:
    """Bursts of another system; ``more`` makes further fields of a request from its number of steps."""

    def burst(url: str, steps: int, count: int, processes: int) -> float:
        with Peer(program, python, url) as process:
            fields = {name: make(steps) for name, make in more.items()}
            return process.burst(steps=steps, count=count, processes=processes, **fields)

    return burst


def systems() -> list[System]:
    """Everything that is measured; environments of peers are built at the first use."""
    queues = interpreter("queues", "celery[redis]", "huey", "dbos")
    return [
        System("effectful nodes", ours(effects), (2_000, 100)),
        System("assignments", ours(lambda steps: Flow.model_validate(flows.chain(steps))), (2_000, 500)),
        System("published worker", peer("published_worker.py", peer_python(), flow=flows.chain), (100, 4)),
        System("Celery chain", peer("celery_chain.py", queues), (100, 4)),
        System("Huey pipeline", peer("huey_pipeline.py", queues), (100, 4)),
        System("DBOS on SQLite", peer("dbos_steps.py", queues), (100, 6), most=1),
    ]


def run(rounds: int = 3) -> list[str]:
    """The lines of the report."""
    lines = [f"bursts of executions, Redis with AOF everysec (median of {rounds}, interleaved)"]
    for processes in (1, 2):
        for which, steps in enumerate((5, 100)):
            here = [one for one in systems() if one.most >= processes]
            rates: dict[str, list[float]] = {one.name: [] for one in here}
            for _ in range(rounds):
                for one in here:
                    with redis_over_tcp(*AOF) as url:
                        count = one.counts[which]
                        rates[one.name].append(count / one.burst(url, steps, count, processes))
            found = {name: statistics.median(values) for name, values in rates.items()}
            for name, rate in found.items():
                peer = PEERS_OF.get(name)
                beside = f"   {found[peer] / rate:6.1f}x of it are {peer}" if peer else ""
                lines.append(f"  {processes} process(es), {steps:3} steps, {name:17}: {rate:8.1f} executions/s{beside}")
    return lines
