"""Workers of this project as processes of their own, beside a store that the benchmark fills and reads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import redis

import bench.nodes
from plaita import Flow
from plaita.backends.limits import Limits
from plaita.backends.redis import RedisBackend
from plaita.base.json import parse
from plaita.control.starting import StartOptions, start_flow
from plaita.ports.values import RunId

AT_ONCE = 100
"""Requests of the benchmark in flight at the same time."""
COMPLETED = "plaita:runs:status:completed"


class Crew:
    """``processes`` workers on an empty store, ``supervised`` by one parent or each on its own. Counts of executions
    it waits for are those that ended in it. ``limits``: those of the store that starts executions."""

    def __init__(self, url: str, processes: int = 1, *, supervised: bool = False, limits: Limits | None = None) -> None:
        self.url, self.processes, self.supervised = url, processes, supervised
        self.client: Any = redis.Redis.from_url(url, decode_responses=True)
        self.client.flushall()
        self.store = RedisBackend(url, limits=limits)
        self.workers: list[subprocess.Popen[bytes]] = []

    async def __aenter__(self) -> Crew:
        command = [sys.executable, "-m", "plaita", "worker", "--store", self.url, "--import", str(bench.nodes.__file__)]
        if self.supervised:
            command += ["--processes", str(self.processes)]
        for _ in range(1 if self.supervised else self.processes):
            log = subprocess.DEVNULL
            self.workers.append(await asyncio.to_thread(subprocess.Popen, command, stdout=log, stderr=log))
        await self.until(lambda: int(self.client.zcard("plaita:processes")) == self.processes)
        return self

    def children(self) -> list[int]:
        """The processes of a supervisor's workers."""
        parent = self.workers[0].pid
        found = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
        return [int(pid) for pid in found]

    async def start(self, flow: Flow, inputs: list[Any], first: int = 0) -> None:
        """Start one execution an input, ``AT_ONCE`` requests at a time; they are named ``r0``, ``r1`` ..."""
        numbered = list(enumerate(inputs, first))
        for at in range(0, len(numbered), AT_ONCE):
            some = numbered[at : at + AT_ONCE]
            await asyncio.gather(
                *(start_flow(self.store, flow, value, StartOptions(execution_id=f"r{i}")) for i, value in some)
            )

    async def completed(self, count: int) -> None:
        """Until so many executions have completed."""
        await self.until(lambda: int(self.client.zcard(COMPLETED)) >= count)

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 300
        while not holds():
            if time.monotonic() > deadline or any(worker.poll() is not None for worker in self.workers):
                raise RuntimeError("the workers do not come to an end")
            await asyncio.sleep(0.005)

    async def outputs(self, count: int) -> list[Any]:
        """What the executions ``r0`` ... returned."""
        found = await asyncio.gather(*(self.store.run(RunId(f"r{i}")) for i in range(count)))
        return [parse(run.output) for run in found if run is not None and run.output is not None]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.wait(60)
        await self.store.close()
        self.client.close()
