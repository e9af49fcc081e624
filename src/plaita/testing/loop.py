"""An event loop whose time is a number: it jumps to the next timer instead of sleeping.

What runs on it is real asyncio code: tasks, timeouts, events, task groups. There is no I/O and there are no threads;
work for an executor is done in the loop's own order. The same code with the same dice takes the same steps.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from itertools import count
from typing import Any, TypeVar, TypeVarTuple

from plaita.server.worker.pool import Job, Jobs

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH_MS = 1_700_000_000_000
RESOLUTION_S = 1e-6
"""Timers this close count as due: seconds are sums of fractions."""
BURY_ROUNDS = 50
"""How often the tasks of a dead process are cancelled: some begin others when they are."""


class Stuck(RuntimeError):
    """Nothing is ready and no timer is set, so what is awaited can never be done."""


class VirtualLoop(asyncio.BaseEventLoop):
    """One simulated process. Driven as a whole by ``run_until_complete``, or turn by turn by a world of several.

    ``time()`` is seconds since the loop was made. Several loops may live side by side on one thread; each knows only
    its own time.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._soon: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self._turning = self._over = False
        self._on_error: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None = None
        super().__init__()

    # Driving it.

    def next_timer(self) -> float | None:
        """When something is to run: the loop's time if something is ready, else the earliest timer, else ``None``."""
        if self._soon:
            return self._now
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return max(self._now, self._timers[0][0]) if self._timers else None

    def turn(self, now: float | None = None) -> None:
        """One iteration: what is ready, and timers that are due at ``now`` (seconds; time never goes back)."""
        if now is not None:
            self._now = max(self._now, now)
        while self._timers and self._timers[0][0] <= self._now + RESOLUTION_S:
            timer = heapq.heappop(self._timers)[2]
            if not timer.cancelled():
                self._soon.append(timer)
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        self._turning = True
        try:
            for _ in range(len(self._soon)):
                handle = self._soon.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            self._turning = before is self
            asyncio._set_running_loop(before)

    def run_until_complete(self, future: Generator[Any, None, T] | Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:  # type: ignore[override]
        """Take turns, jumping from timer to timer, until it is done. Raises ``Stuck`` when it never will be."""
        task: asyncio.Future[T] = asyncio.ensure_future(future, loop=self)  # type: ignore[arg-type]
        while not task.done():
            at = self.next_timer()
            if at is None:
                task.cancel()
                raise Stuck("nothing is ready and no timer is set: what is awaited can never be done")
            self.turn(at)
        return task.result()

    def close(self) -> None:
        """Drop what is still scheduled."""
        self._over = True
        self._soon.clear()
        self._timers.clear()

    # What asyncio asks of a loop.

    def time(self) -> float:
        return self._now

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self._over:
            self._soon.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if not self._over:
            heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are passed over when their time comes."""

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """The work is done on this loop, one turn later."""

        async def work() -> T:
            return func(*args)

        return self.create_task(work())

    def is_running(self) -> bool:
        return self._turning

    def is_closed(self) -> bool:
        return self._over

    def get_debug(self) -> bool:
        return False

    def __del__(self) -> None:
        """There is nothing to give back: a loop may be dropped unclosed."""

    def set_exception_handler(self, handler: Any) -> None:
        self._on_error = handler

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """An error that nobody awaits: raised where the loop is driven, unless a handler was set."""
        error = context.get("exception")
        if self._on_error is not None:
            self._on_error(self, context)
        elif isinstance(error, BaseException) and not self._over:
            raise error
        elif not self._over:
            super().call_exception_handler(context)


def bury(loop: VirtualLoop) -> None:
    """Let what is left of a process end where it can touch nothing."""
    loop.set_exception_handler(lambda *_: None)
    for _ in range(BURY_ROUNDS):
        tasks = [task for task in asyncio.all_tasks(loop) if not task.done()]
        if not tasks:
            break
        for task in tasks:
            task.cancel()
        while (at := loop.next_timer()) is not None and at <= loop.time():
            loop.turn(at)
    loop.close()


class _Idle(BaseException):
    """A simulated thread has nothing to do; no ``except`` of the product may take it for an error."""


class LoopSpawner:
    """A ``Spawner`` without threads: what a thread of a pool would do is done on the loop, job after job."""

    def __init__(self) -> None:
        self._asleep: list[Callable[[], None]] = []

    def spawn(self, name: str, target: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(self._work, target)

    def jobs(self) -> Jobs:
        return _LoopJobs(self)

    def _wake_one(self) -> None:
        if self._asleep:
            self.spawn("", self._asleep.pop())

    def _work(self, target: Callable[[], None]) -> None:
        try:
            target()
        except _Idle:
            self._asleep.append(target)


class _LoopJobs:
    """Where a thread would block, it is put to sleep and started again with the next job."""

    def __init__(self, spawner: LoopSpawner) -> None:
        self._spawner = spawner
        self._jobs: deque[Job | None] = deque()

    def put(self, job: Job | None, /) -> None:
        self._jobs.append(job)
        self._spawner._wake_one()

    def get(self) -> Job | None:
        if not self._jobs:
            raise _Idle
        return self._jobs.popleft()
