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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from plaita.base.clock import Clock, SystemClock, new_id, roll
from plaita.base.errors import PlaitaError
from plaita.base.json import Json, admit
from plaita.core import calls
from plaita.core.errors import exception_of
from plaita.core.threads import Threads
from plaita.engine.effects import Call, Cancel, Detached, Done, Effects, Event, Failed
from plaita.engine.frames import BACKOFF, READY
from plaita.engine.machine import Conditions, Run, advance, next_due, start
from plaita.engine.program import Program
from plaita.engine.tracing import Trace

if TYPE_CHECKING:
    from plaita.core.flow import Flow

POOL_SIZE = 8
ACTIVE_MS = 1_800_000
FUEL = 20_000
"""Rounds between two looks at the clock: deadlines are noticed, and looking costs nothing against the rounds."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a plain run is driven. ``warn`` is told of errors nobody waits for.

    ``budget_ms`` is a limit of this run beside the flow's own timeout. ``durable``: waits are possible, whoever drives
    it keeps the run.
    """

    env: Mapping[str, str] = field(default_factory=lambda: os.environ)  # noqa: TID251 - nobody composes a plain run
    timezone: str | None = None
    active_ms_max: int = ACTIVE_MS
    budget_ms: int | None = None
    durable: bool = False
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


def conditions_of(options: Options, execution_id: str = "", entry: str = "") -> Conditions:
    """What a run in this process is started under; ``entry`` of a detached branch."""
    return Conditions(
        execution_id or new_id(),
        options.env,
        options.timezone,
        durable=options.durable,
        active_ms_max=options.active_ms_max,
        fuel=FUEL,
        trace=options.trace,
        entry=entry,
    )


def begin(program: Program, value: Json, options: Options, execution_id: str = "", entry: str = "") -> Run:
    """A run from now on that nobody has driven yet. Raises ``InputError`` when its input is not what is declared."""
    now_ms = SystemClock().now_ms()
    run = start(program, conditions_of(options, execution_id, entry), value, now_ms=now_ms)
    limit_time(run, options.budget_ms, now_ms)
    return run


def limit_time(run: Run, budget_ms: int | None, now_ms: int) -> None:
    """The run ends that long from now at the latest."""
    if budget_ms is not None:
        until = now_ms + budget_ms
        run.deadline_ms = until if run.deadline_ms is None else min(run.deadline_ms, until)


def rests(run: Run, effects: Effects) -> bool:
    """Is there nothing to perform: the flow paused at its step limit, or everything in it waits for somebody?"""
    if run.steps == 0 and run.root.state == READY:
        return True
    idle = not effects.more and not run.calls and bool(run.waits)
    return idle and not any(frame.state == BACKOFF for frame in run.frames)


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
        self.detached: list[Detached] = []
        self._threads = Threads(POOL_SIZE)
        self._open: dict[str, tuple[Future[Event], calls.NodeExecution]] = {}
        self._cancel: Future[None] = Future()

    def cancel(self) -> None:
        """End the run at its next advance; may be called from any thread."""
        if not self._cancel.done():
            self._cancel.set_result(None)

    def __enter__(self) -> SyncDriver:
        return self

    def __exit__(self, *_: object) -> None:
        for call_id in list(self._open):
            self._drop(call_id)

    def run(self, program: Program, value: Json, entry: str = "") -> Json:
        """Run one flow, and the branches it detached, to the end."""
        run = begin(program, value, self.options, entry=entry)
        effects = self.drive(run)
        self.run_detached(program)
        return outcome(effects)

    def drive(self, run: Run, events: Sequence[Event] = ()) -> Effects:
        """Advance and perform until it ends or rests; what the last advance said."""
        while True:
            if self._cancel.done():
                events = [Cancel()]
            effects = advance(run, events, now_ms=self.clock.now_ms(), dice=roll())
            self.detached += effects.detached
            for call_id in effects.drops:
                self._drop(call_id)
            if effects.ended is not None or rests(run, effects):
                return effects
            events = self._perform(run, effects)

    def run_detached(self, program: Program) -> None:
        """Run the branches that were left behind; their errors are warnings."""
        branches, self.detached = self.detached, []
        for branch in branches:
            with SyncDriver(replace(self.options, trace=None)) as driver, reported(branch, self.options):
                driver.run(program, branch.document, branch.entry)

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
        futures: list[Future[Any]] = [self._cancel, *(future for future, _ in self._open.values())]
        wait(futures, seconds, FIRST_COMPLETED)
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
        self.detached: list[Detached] = []
        self._threads = Threads(POOL_SIZE)
        self._open: dict[str, tuple[asyncio.Future[Event], calls.NodeExecution]] = {}
        self._cancel: Future[None] = Future()
        self._cancelled: asyncio.Future[None] | None = None

    def cancel(self) -> None:
        """End the run at its next advance; may be called from any thread."""
        if not self._cancel.done():
            self._cancel.set_result(None)

    async def run(self, program: Program, value: Json, entry: str = "") -> Json:
        """Run one flow, and the branches it detached, to the end."""
        run = begin(program, value, self.options, entry=entry)
        try:
            effects = await self.drive(run)
        finally:
            self.close()
        await self.run_detached(program)
        return outcome(effects)

    async def drive(self, run: Run, events: Sequence[Event] = ()) -> Effects:
        """Advance and perform until it ends or rests; what the last advance said."""
        while True:
            if self._cancel.done():
                events = [Cancel()]
            effects = advance(run, events, now_ms=self.clock.now_ms(), dice=roll())
            self.detached += effects.detached
            for call_id in effects.drops:
                self._drop(call_id)
            if effects.ended is not None or rests(run, effects):
                return effects
            for call in effects.calls.values():
                self._submit(call)
            events = [] if effects.more else await self._wait(run)

    async def run_detached(self, program: Program) -> None:
        """Run the branches that were left behind; their errors are warnings."""
        branches, self.detached = self.detached, []
        for branch in branches:
            with reported(branch, self.options):
                await AsyncDriver(replace(self.options, trace=None)).run(program, branch.document, branch.entry)

    def close(self) -> None:
        """Abandon what is still open."""
        for call_id in list(self._open):
            self._drop(call_id)

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
        if self._cancelled is None:
            self._cancelled = asyncio.wrap_future(self._cancel)
        futures: list[asyncio.Future[Any]] = [self._cancelled, *(future for future, _ in self._open.values())]
        await asyncio.wait(futures, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        done = [call_id for call_id, (future, _) in self._open.items() if future.done()]
        return [self._open.pop(call_id)[0].result() for call_id in done]

    def _drop(self, call_id: str) -> None:
        entry = self._open.pop(call_id, None)
        if entry is not None:
            entry[1].close()
            entry[0].cancel()
