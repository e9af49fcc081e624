"""Moving an execution in this process until it waits or ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from plaita.app import store_opener, worker_options
from plaita.base.clock import SystemClock
from plaita.ports.backend import Backend
from plaita.ports.processes import Process
from plaita.ports.queries import RunView
from plaita.ports.values import TERMINAL, RunId
from plaita.server.worker.timeline import Observer
from plaita.server.worker.worker import Worker
from plaita.settings import Settings
from plaita.telemetry.sink import Telemetry

POLL_MS = 100

Until = Literal["wait", "end"]


@dataclass(frozen=True, slots=True)
class Drive:
    """How to drive: ``until`` ``wait`` stops at the first wait, ``end`` stays. ``observer`` is told of every step."""

    settings: Settings
    until: Until = "wait"
    observer: Observer | None = None
    telemetry: Telemetry | None = None
    imports: tuple[str, ...] = ()


def is_over(view: RunView) -> bool:
    """Has the execution ended?"""
    return view.status in TERMINAL


def rests(view: RunView, now_ms: int) -> bool:
    """Does it wait for something outside, with nothing to do now? A backoff or a due timer is no rest."""
    due_later = view.due_ms is None or view.due_ms > now_ms
    if view.blocked_reason:
        return True
    waits = view.status == "suspended" and view.token is None and view.retry_ms is None and due_later
    starts_later = view.status == "queued" and view.not_before_ms is not None and view.not_before_ms > now_ms
    return waits or starts_later


async def drive(
    store: Backend, execution_id: RunId, how: Drive, stop: asyncio.Event | None = None, timeout_ms: int | None = None
) -> RunView:
    """Drive one execution and its children until it rests (or ends); answers what it is then.

    Stops early when ``stop`` is set or the time is up: what runs is handed back. Another live process may do the work.
    """
    stop = stop or asyncio.Event()
    options = worker_options(how.settings, only=execution_id)
    options = replace(options, imports=(*options.imports, *how.imports))
    worker = Worker(
        store,
        options,
        renewal_opener=store_opener(how.settings),
        telemetry=how.telemetry,
        observer=how.observer,
    )
    ended = asyncio.Event()
    working = asyncio.create_task(worker.run(ended))
    clock = SystemClock()
    start = clock.elapsed_ms()
    try:
        while True:
            view = await _view(store, execution_id)
            if is_over(view) or (how.until == "wait" and rests(view, await store.now_ms())):
                break
            if stop.is_set() or working.done():
                break
            if timeout_ms is not None and clock.elapsed_ms() - start >= timeout_ms:
                break
            await worker.changed(POLL_MS)
    finally:
        ended.set()
        await working
    return await _view(store, execution_id)


async def _view(store: Backend, execution_id: RunId) -> RunView:
    view = await store.run(execution_id)
    if view is None:
        raise KeyError(execution_id)
    return view


def takes(process: Process, view: RunView) -> bool:
    """Would this live process claim the execution?"""
    if process.pid == os.getpid() or view.queue not in process.queues:
        return False
    bound = process.only
    return bound is None or bound == view.run_id or view.run_id.startswith(f"{bound}.")


async def is_taken(store: Backend, view: RunView) -> bool:
    """Is there another live process that moves this execution?"""
    return any(takes(process, view) for process in await store.living())


async def drive_unless_taken(store: Backend, execution_id: RunId, how: Drive) -> RunView:
    """Drive to the next wait, unless a live process does it."""
    view = await _view(store, execution_id)
    if is_over(view) or await is_taken(store, view):
        return view
    return await drive(store, execution_id, how)


async def due_executions(store: Backend) -> list[RunId]:
    """Executions that somebody should look at now and nobody holds, for example after an event."""
    now = await store.now_ms()
    found: list[RunId] = []
    for status in ("suspended", "running", "queued"):
        views, _ = await store.runs(status=status, limit=1000)
        found += [v.run_id for v in views if v.token is None and v.due_ms is not None and v.due_ms <= now]
    return found


Opener = Callable[[], Backend]
