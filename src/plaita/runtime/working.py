"""A worker process: takes whatever is due in its queues until it is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from plaita.app import (
    open_store,
    program_events,
    store_opener,
    strange_variables,
    stream_names,
    worker_options,
)
from plaita.backends.configured import limits_of
from plaita.base.errors import NotSupported
from plaita.ports.backend import Backend
from plaita.server.worker import Surroundings, Worker
from plaita.server.worker.alerts import Sender
from plaita.server.worker.bridge import bridged, looking_of
from plaita.server.worker.measuring import Measures, Streams
from plaita.server.worker.showing import reporting, served
from plaita.settings import Settings
from plaita.settings.current import environment
from plaita.telemetry.events import SETTING_UNKNOWN, STORE_AT_RISK
from plaita.telemetry.exposition import check_package
from plaita.telemetry.sink import Telemetry


@dataclass(frozen=True, slots=True)
class Shift:
    """What a worker takes; ``concurrency`` ``None``: as the settings say. ``holder`` is the name it works under and
    belongs to a process above this one, which has reported what there is to report; empty: a new one."""

    queues: tuple[str, ...] = ("default",)
    concurrency: int | None = None
    holder: str = ""


async def work(
    settings: Settings, shift: Shift, stop: asyncio.Event, ready: Callable[[], None] | None = None
) -> None:  # fmt: skip
    """Work until ``stop`` is set, then let executions reach their next commit and give them back.

    ``ready`` is called once the worker takes executions.
    """
    check_worker(settings)
    options = worker_options(
        settings, queues=shift.queues, concurrency=shift.concurrency, holder=shift.holder, named=True
    )
    store, own = open_store(settings), settings.worker
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        sender = _sender(settings, options.facts.instance)
        reports = await stack.enter_async_context(
            reporting(own.alert_webhook, sender, counts=bool(own.metrics_port))
        )  # fmt: skip
        telemetry = reports.telemetry
        if not shift.holder:
            await report_risks(store, telemetry)
        around = Surroundings(telemetry=telemetry, ready=ready)
        worker = Worker(store, options, around, renewal_opener=store_opener(settings))
        measures = Measures(
            worker.presence,
            store,
            around.clock,
            reports.counting.readings,
            reports.pending,
            Streams.of(limits_of(settings, environment()), own.attempts_max),
        )
        await stack.enter_async_context(served(own.metrics_host, own.metrics_port, measures))
        await stack.enter_async_context(bridged(store, program_events(store), telemetry, looking_of(settings.events)))
        await worker.run(stop)


def check_worker(settings: Settings) -> None:
    """Raises ``NotSupported`` for a store that two processes cannot share, and for pages that nothing can write."""
    if settings.worker.metrics_port:
        check_package()
    if settings.store.url == "memory:":
        raise NotSupported("a worker cannot share the store memory: with another process", "--store sqlite:///PATH")


async def report_risks(store: Backend, telemetry: Telemetry) -> None:
    """What an operator should know before anything runs. Raises ``Unavailable``."""
    for variable, hint in strange_variables().items():
        telemetry.emit(SETTING_UNKNOWN, variable=variable, hint=hint)
    for risk in await store.risks():
        telemetry.emit(STORE_AT_RISK, store=store.name, risk=risk.message, hint=risk.hint)


def _sender(settings: Settings, instance: str) -> Sender:
    inbox, dead = stream_names(settings)
    return Sender(inbox, dead, settings.store.dlq_max_len, instance)
