"""Moving an execution in this process until it waits or ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from plaita.app import store_opener, worker_options
from plaita.base.clock import Clock, SystemClock
from plaita.base.errors import NotSupported
from plaita.control.crew import is_moved
from plaita.control.explaining import takes
from plaita.control.looking import is_over, rests, run_of
from plaita.core.callback import FlowCallback
from plaita.ports.backend import Backend
from plaita.ports.queries import RunView
from plaita.ports.values import RunId
from plaita.server.worker import Surroundings, Worker
from plaita.server.worker.timeline import Observer
from plaita.settings import Settings
from plaita.telemetry.sink import LogTelemetry, Telemetry

POLL_MS = 100
PAGE = 200
LATE_MS = 2_000
"""How long something may be due before it counts as left alone, although a live process would take it."""

T = TypeVar("T")

__all__ = [
    "Drive", "drive", "drive_unless_taken", "follow", "follow_through", "go_on", "interrupted", "is_over",
    "is_taken", "is_taken_in_time", "move_woken", "rests", "woken_by",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drive:
    """How to drive. ``observer`` is told of every step, ``callbacks`` of flows and nodes."""

    settings: Settings
    observer: Observer | None = None
    telemetry: Telemetry | None = None
    imports: tuple[str, ...] = ()
    callbacks: tuple[FlowCallback, ...] = ()


async def drive(
    store: Backend, execution_id: RunId, how: Drive, stop: asyncio.Event | None = None, timeout_ms: int | None = None
) -> RunView:
    """Drive one execution and its children until it rests (or ends); answers what it is then.

    Stops early when ``stop`` is set or the time is up: what runs is handed back. Another live process may do the work.
    Raises ``NotSupported`` when this process cannot load the flow.
    """
    stop = stop or asyncio.Event()
    view = await run_of(store, execution_id)
    options = worker_options(how.settings, only=execution_id)
    options = replace(options, queues=(view.queue,), imports=(*options.imports, *how.imports))
    around = Surroundings(telemetry=how.telemetry or LogTelemetry(), observer=how.observer, callbacks=how.callbacks)
    worker = Worker(store, options, around, renewal_opener=store_opener(how.settings))
    ended = asyncio.Event()
    working = asyncio.create_task(worker.run(ended))
    ends = None if timeout_ms is None else SystemClock().elapsed_ms() + timeout_ms
    try:
        while not (stop.is_set() or working.done() or view.closure in worker.lacks):
            view = await run_of(store, execution_id)
            if is_over(view) or rests(view, await store.now_ms()):
                break
            if ends is not None and SystemClock().elapsed_ms() >= ends:
                break
            await worker.changed(POLL_MS)
    finally:
        ended.set()
        await working
    view = await run_of(store, execution_id)
    if not is_over(view) and view.closure in worker.lacks:
        reason = worker.lacks[view.closure]
        raise NotSupported(
            f"this process cannot load the flow of execution {execution_id}: {reason}",
            "--import MODULE or FILE.py names the custom nodes it needs",
        )
    return view


async def is_taken(store: Backend, view: RunView) -> bool:
    """Is there another live process that moves this execution?"""
    return any(process.pid != os.getpid() and takes(process, view) for process in await store.living())


async def is_taken_in_time(store: Backend, view: RunView) -> bool:
    """Is there one that keeps to its time? A process that is stopped lives, but takes nothing and renews no lease."""
    late = view.due_ms is not None and await store.now_ms() > view.due_ms + LATE_MS
    return not late and await is_taken(store, view)


async def drive_unless_taken(store: Backend, execution_id: RunId, how: Drive) -> RunView:
    """Drive to the next wait, unless a live process does it."""
    view = await run_of(store, execution_id)
    if is_over(view) or await is_taken_in_time(store, view):
        return view
    return await drive(store, execution_id, how)


async def go_on(store: Backend, execution_id: RunId, how: Drive) -> RunView:
    """``drive_unless_taken`` after an answer that counted: a flow this process cannot load is left due for another."""
    try:
        return await drive_unless_taken(store, execution_id, how)
    except NotSupported:
        return await run_of(store, execution_id)


async def follow(
    store: Backend,
    execution_id: RunId,
    how: Drive,
    *,
    stop: asyncio.Event | None = None,
    timeout_ms: int | None = None,
    patience_ms: int | None = None,
) -> RunView:
    """Until it rests (or ends), whoever moves it: driven here, or watched while a live process takes it.

    ``timeout_ms`` bounds all of it, ``patience_ms`` only the watching of another process. One that stays blocked is
    taken by none of those that live.
    """
    stop, clock = stop or asyncio.Event(), SystemClock()
    begun = moved = clock.elapsed_ms()
    while True:
        view = await run_of(store, execution_id)
        if is_over(view) or rests(view, await store.now_ms()) or stop.is_set():
            return view
        now = clock.elapsed_ms()
        passed = int(now - begun)
        moved = moved if view.blocked_reason else now
        if timeout_ms is not None and passed >= timeout_ms:
            return view
        if now - moved > LATE_MS or not await is_taken_in_time(store, view):
            left = None if timeout_ms is None else timeout_ms - passed
            return await drive(store, execution_id, how, stop, left)
        if patience_ms is not None and passed >= patience_ms:
            return view
        await store.hint(POLL_MS)


async def follow_through(
    store: Backend,
    execution_id: RunId,
    how: Drive,
    stays: Callable[[RunView], Awaitable[bool]],
    *,
    stop: asyncio.Event | None = None,
    timeout_ms: int | None = None,
) -> RunView:
    """``follow``, and again each time it has gone on. ``stays`` is asked once where it rests: whether to stay."""
    stop, clock = stop or asyncio.Event(), SystemClock()
    ends = None if timeout_ms is None else clock.elapsed_ms() + timeout_ms
    while True:
        left = None if ends is None else max(0, int(ends - clock.elapsed_ms()))
        view = await follow(store, execution_id, how, stop=stop, timeout_ms=left)
        if is_over(view) or _is_time(stop, clock, ends) or not await stays(view):
            return view
        # Somebody else may have moved it from one rest to another between two looks.
        seq = view.seq
        while view.seq == seq and rests(view, await store.now_ms()) and not _is_time(stop, clock, ends):
            await store.hint(POLL_MS)
            view = await run_of(store, execution_id)


def _is_time(stop: asyncio.Event, clock: Clock, ends: float | None) -> bool:
    return stop.is_set() or (ends is not None and clock.elapsed_ms() >= ends)


async def woken_by(store: Backend, event_type: str) -> list[RunId]:
    """Executions that have something to read about an event of this type and that nobody has looked at since."""
    now, found, cursor = await store.now_ms(), list[RunId](), ""
    while True:
        views, cursor = await store.runs(status="suspended", limit=PAGE, cursor=cursor)
        for view in views:
            is_due = view.token is None and view.due_ms is not None and view.due_ms <= now
            waits = await store.waits(view.run_id, open_only=False) if is_due else ()
            if any(wait.event_type == event_type and wait.state != "closed" for wait in waits):
                found.append(view.run_id)
        if not cursor:
            return found


async def move_woken(store: Backend, event_type: str, move: Callable[[RunId], Awaitable[T]]) -> list[T]:
    """Move every execution that an event of this type woke, also those that claims wake on the way; in turn."""
    moved: dict[RunId, T] = {}
    while fresh := [run_id for run_id in await woken_by(store, event_type) if run_id not in moved]:
        for run_id in fresh:
            moved[run_id] = await move(run_id)
    return list(moved.values())


async def interrupted(store: Backend, flow_id: str) -> list[RunView]:
    """Executions of a flow that were cut off: begun, not over, waiting for nothing, and no live process has them."""
    await store.bury_dead()
    found: list[RunView] = []
    for status in ("running", "suspended"):
        views, _ = await store.runs(status=status, flow_id=flow_id, limit=PAGE)
        found += [v for v in views if status == "running" or v.retry_ms is not None]
    return [v for v in found if not await is_moved(store, v)]
