"""Threads for blocking node code: a fixed number of slots; a thread left behind is replaced."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Job:
    """One blocking call. ``abandoned`` is set when nobody waits any more; ``left_behind`` is told if it had begun."""

    __slots__ = ("abandoned", "future", "left_behind", "started", "work")

    def __init__(
        self, work: Callable[[], Any], left_behind: Callable[[], None], future: asyncio.Future[Any]
    ) -> None:  # fmt: skip
        self.work, self.left_behind, self.future = work, left_behind, future
        self.abandoned = self.started = False


class Jobs(Protocol):
    """A queue that threads wait on; ``None`` tells one of them to end."""

    def put(self, job: Job | None, /) -> None: ...
    def get(self) -> Job | None: ...


class Spawner(Protocol):
    """Starts threads. Injected, so that a simulation can run what a thread would in its own order."""

    def spawn(self, name: str, target: Callable[[], None]) -> None:
        """Run ``target`` in a daemon thread."""

    def jobs(self) -> Jobs:
        """A new queue for the threads of one pool."""


class ThreadSpawner:
    """Real threads."""

    def spawn(self, name: str, target: Callable[[], None]) -> None:
        threading.Thread(target=target, name=name, daemon=True).start()

    def jobs(self) -> Jobs:
        return SimpleQueue()


class Pool:
    """At most ``size`` jobs at once. Threads start when needed. Belongs to one event loop."""

    def __init__(self, size: int, spawner: Spawner) -> None:
        self._size, self._spawner = size, spawner
        self._jobs = spawner.jobs()
        self._threads = self._busy = 0
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], T], left_behind: Callable[[], None]) -> T:
        """Run in a thread. When the awaiting task is cancelled the thread is left behind and its slot replaced."""
        loop = asyncio.get_running_loop()
        job = Job(work, left_behind, loop.create_future())
        with self._lock:
            self._busy += 1
            if self._threads < self._size and self._busy > self._threads:
                self._threads += 1
                self._spawn(loop)
        self._jobs.put(job)
        try:
            result: T = await job.future
        except asyncio.CancelledError:
            self._abandon(job, loop)
            raise
        return result

    def close(self) -> None:
        """Let idle threads end."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _spawn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._spawner.spawn("plaita-node", lambda: self._work(loop))

    def _abandon(self, job: Job, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            job.abandoned = True
            if job.started:
                self._spawn(loop)
        if job.started:
            job.left_behind()

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while (job := self._jobs.get()) is not None:
            with self._lock:
                job.started = not job.abandoned
            if job.started:
                result = job.work()
                _deliver(loop, job, result)
            with self._lock:
                self._busy -= 1
                if job.abandoned and job.started:
                    return


def _deliver(loop: asyncio.AbstractEventLoop, job: Job, result: Any) -> None:
    def hand_over() -> None:
        if not job.future.done():
            job.future.set_result(result)

    if not loop.is_closed():
        loop.call_soon_threadsafe(hand_over)
