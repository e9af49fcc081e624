"""Running a flow in this process: the plain synchronous driver and its asyncio twin.

Neither stores anything. ``run_flow`` uses no event loop and no thread unless it must: an ``arun`` node runs on one
private loop thread, a synchronous node runs in a thread only when a timeout may have to abandon it or when several
calls are open at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plaita.base.clock import Clock, SystemClock, new_id, roll
from plaita.base.errors import PlaitaError
from plaita.base.json import Json, admit
from plaita.core import calls
from plaita.core.errors import exception_of
from plaita.core.threads import Threads
from plaita.engine.effects import Call, Detached, Done, Effects, Event, Failed
from plaita.engine.machine import Conditions, Run, Trace, advance, next_due, start
from plaita.engine.program import Program

if TYPE_CHECKING:
    from plaita.core.flow import Flow

POOL_SIZE = 8
ACTIVE_MS = 1_800_000


@dataclass(frozen=True, slots=True)
class Options:
    """How a plain run is driven. ``warn`` is told of errors nobody waits for."""

    env: Mapping[str, str] = field(default_factory=lambda: os.environ)  # noqa: TID251 - nobody composes a plain run
    timezone: str | None = None
    active_ms_max: int = ACTIVE_MS
    trace: Trace | None = None
    warn: Callable[[str], None] = logging.getLogger("plaita").warning


def run_flow(flow: Flow, value: Json, options: Options | None = None) -> Json:
    """Run to the end and give the output; raises the documented exceptions."""
    options = options or Options()
    with SyncDriver(options) as driver:
        return driver.run(flow.program, admit(value))


async def arun_flow(flow: Flow, value: Json, options: Options | None = None) -> Json:
    """The same in a running event loop: coroutines are awaited, synchronous nodes run in the loop's pool."""
    return await AsyncDriver(options or Options()).run(flow.program, admit(value))


def begin(program: Program, value: Json, options: Options, now_ms: int, entry: str = "") -> Run:
    """A run that is not durable; with ``entry`` of a detached branch."""
    conditions = Conditions(
        new_id(),
        options.env,
        options.timezone,
        durable=False,
        active_ms_max=options.active_ms_max,
        fuel=1_000_000,
        trace=options.trace,
        entry=entry,
    )
    return start(program, conditions, value, now_ms=now_ms)


def outcome(effects: Effects) -> Json:
    """The output of an ended run, or its exception."""
    match effects.ended:
        case Done(output):
            return output
        case Failed(failure):
            raise exception_of(failure)
        case None:
            raise AssertionError("the run goes on")


@contextmanager
def reported(branch: Detached, options: Options) -> Iterator[None]:
    """Nobody waits for a detached branch: its error is a warning."""
    try:
        yield
    except PlaitaError as e:
        options.warn(f"the detached branch {branch.key} failed: {e}")


def timed(call: Call) -> bool:
    """Could a timeout of the node, or of a host above it, have to abandon the call?"""
    frame = call.frame
    at = frame
    while at is not None:
        if at.due is not None or at.limit is not None:
            return True
        if at.host is None:
            break
        at = at.host
    return frame.run.deadline_ms is not None


class SyncDriver:
    """Drives one run at a time without an event loop."""

    def __init__(self, options: Options) -> None:
        self.options, self.clock = options, SystemClock()
        self._threads = Threads(POOL_SIZE)
        self._open: dict[str, tuple[Future[Event], calls.NodeExecution]] = {}

    def __enter__(self) -> SyncDriver:
        return self

    def __exit__(self, *_: object) -> None:
        for call_id in list(self._open):
            self._drop(call_id)

    def run(self, program: Program, value: Json, entry: str = "") -> Json:
        """Run one flow, and the branches it detached, to the end."""
        run = begin(program, value, self.options, self.clock.now_ms(), entry)
        detached: list[Detached] = []
        events: list[Event] = []
        while True:
            effects = advance(run, events, now_ms=self.clock.now_ms(), dice=roll())
            detached += effects.detached
            if effects.ended is not None:
                break
            for call_id in effects.drops:
                self._drop(call_id)
            events = self._perform(run, effects)
        for branch in detached:
            with SyncDriver(self.options) as driver, reported(branch, self.options):
                driver.run(program, branch.document, branch.entry)
        return outcome(effects)

    def _perform(self, run: Run, effects: Effects) -> list[Event]:
        issued = list(effects.calls.values())
        if not effects.more and len(issued) == 1 and not self._open:
            call = issued[0]
            if not calls.is_async(call) and not timed(call):
                return [calls.perform(call, calls.NodeExecution(call, run.execution_id))]
        for call in issued:
            self._submit(call)
        return [] if effects.more else self._wait(run)

    def _submit(self, call: Call) -> None:
        view = calls.NodeExecution(call, call.frame.run.execution_id)
        future: Future[Event]
        if calls.is_async(call):
            future = asyncio.run_coroutine_threadsafe(calls.aperform(call, view), private_loop())
        else:
            future = self._threads.submit(lambda: calls.perform(call, view))
        self._open[call.id] = (future, view)

    def _wait(self, run: Run) -> list[Event]:
        seconds = seconds_left(run, self.clock)
        if not self._open:
            threading.Event().wait(seconds)
            return []
        wait([future for future, _ in self._open.values()], seconds, FIRST_COMPLETED)
        done = [call_id for call_id, (future, _) in self._open.items() if future.done()]
        return [self._open.pop(call_id)[0].result() for call_id in done]

    def _drop(self, call_id: str) -> None:
        entry = self._open.pop(call_id, None)
        if entry is not None:
            entry[1].close()
            self._threads.abandon(entry[0])


def seconds_left(run: Run, clock: Clock) -> float | None:
    """How long a driver may wait for calls, ``None`` for as long as they take."""
    due = next_due(run)
    return None if due is None else max(0, due - clock.now_ms()) / 1000


_loops: list[asyncio.AbstractEventLoop] = []
_loops_lock = threading.Lock()


def private_loop() -> asyncio.AbstractEventLoop:
    """The loop thread that ``arun`` nodes of plain runs share, started at the first use."""
    with _loops_lock:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="plaita-loop", daemon=True).start()
            _loops.append(loop)
        return _loops[0]


class AsyncDriver:
    """Drives one run in the running loop."""

    def __init__(self, options: Options) -> None:
        self.options, self.clock = options, SystemClock()
        self._threads = Threads(POOL_SIZE)
        self._open: dict[str, tuple[asyncio.Future[Event], calls.NodeExecution]] = {}

    async def run(self, program: Program, value: Json, entry: str = "") -> Json:
        """Run one flow, and the branches it detached, to the end."""
        run = begin(program, value, self.options, self.clock.now_ms(), entry)
        detached: list[Detached] = []
        events: list[Event] = []
        try:
            while True:
                effects = advance(run, events, now_ms=self.clock.now_ms(), dice=roll())
                detached += effects.detached
                if effects.ended is not None:
                    break
                for call_id in effects.drops:
                    self._drop(call_id)
                for call in effects.calls.values():
                    self._submit(call)
                events = [] if effects.more else await self._wait(run)
        finally:
            for call_id in list(self._open):
                self._drop(call_id)
        for branch in detached:
            with reported(branch, self.options):
                await AsyncDriver(self.options).run(program, branch.document, branch.entry)
        return outcome(effects)

    def _submit(self, call: Call) -> None:
        view = calls.NodeExecution(call, call.frame.run.execution_id)
        future: asyncio.Future[Event]
        if calls.is_async(call):
            future = asyncio.create_task(calls.aperform(call, view))
        else:
            inner = self._threads.submit(lambda: calls.perform(call, view))
            future = asyncio.wrap_future(inner)  # type: ignore[arg-type]
            future.add_done_callback(lambda outer: self._threads.abandon(inner) if outer.cancelled() else None)
        self._open[call.id] = (future, view)

    async def _wait(self, run: Run) -> list[Event]:
        seconds = seconds_left(run, self.clock)
        if not self._open:
            await asyncio.sleep(seconds or 0)
            return []
        await asyncio.wait([f for f, _ in self._open.values()], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        done = [call_id for call_id, (future, _) in self._open.items() if future.done()]
        return [self._open.pop(call_id)[0].result() for call_id in done]

    def _drop(self, call_id: str) -> None:
        entry = self._open.pop(call_id, None)
        if entry is not None:
            entry[1].close()
            entry[0].cancel()
