"""A worker process: takes whatever is due in its queues until it is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from plaita.app import (
    looking_of,
    open_store,
    program_events,
    store_opener,
    strange_variables,
    stream_names,
    worker_options,
)
from plaita.base.clock import SystemClock
from plaita.base.errors import NotSupported
from plaita.ports.backend import Backend
from plaita.server.worker.alerts import AlertingTelemetry, Alerts, Sender
from plaita.server.worker.bridge import bridged
from plaita.server.worker.endpoint import Endpoint
from plaita.server.worker.measuring import Measures, Streams
from plaita.server.worker.worker import Surroundings, Worker
from plaita.settings import Settings
from plaita.telemetry.events import SETTING_UNKNOWN, STORE_AT_RISK
from plaita.telemetry.sink import LogTelemetry, Telemetry


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
    check_store(settings)
    options = worker_options(
        settings, queues=shift.queues, concurrency=shift.concurrency, holder=shift.holder, named=True
    )
    counting = LogTelemetry()
    store = open_store(settings)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        alerts = _alerts(settings, counting, options.facts.instance)
        telemetry: Telemetry = counting
        if alerts is not None:
            telemetry = AlertingTelemetry(counting, alerts)
            alerts.begin()
            stack.push_async_callback(alerts.end)
        if not shift.holder:
            await report_risks(store, telemetry)
        around = Surroundings(telemetry=telemetry, ready=ready)
        worker = Worker(store, options, around, renewal_opener=store_opener(settings))
        measures = Measures(
            worker.presence,
            store,
            around.clock,
            counting.readings,
            lambda: 0 if alerts is None else alerts.pending,
            _streams(settings),
        )
        await stack.enter_async_context(_served(settings, measures))
        await stack.enter_async_context(bridged(store, program_events(store), telemetry, looking_of(settings)))
        await worker.run(stop)


def check_store(settings: Settings) -> None:
    """Raises ``NotSupported`` for a store that two processes cannot share."""
    if settings.store.url == "memory:":
        raise NotSupported("a worker cannot share the store memory: with another process", "--store sqlite:///PATH")


async def report_risks(store: Backend, telemetry: Telemetry) -> None:
    """What an operator should know before anything runs. Raises ``Unavailable``."""
    for variable, hint in strange_variables().items():
        telemetry.emit(SETTING_UNKNOWN, variable=variable, hint=hint)
    for risk in await store.risks():
        telemetry.emit(STORE_AT_RISK, store=store.name, risk=risk.message, hint=risk.hint)


def _alerts(settings: Settings, telemetry: LogTelemetry, instance: str) -> Alerts | None:
    if not settings.worker.alert_webhook:
        return None
    inbox, dead = stream_names(settings)
    sender = Sender(inbox, dead, settings.store.dlq_max_len, instance)
    return Alerts(settings.worker.alert_webhook, sender, SystemClock(), telemetry)


def _streams(settings: Settings) -> Streams:
    store = settings.store
    return Streams(
        stream_names(settings)[0],
        store.consumer_group,
        store.dlq_max_len,
        store.claim_min_idle_ms,
        settings.worker.attempts_max,
    )


@asynccontextmanager
async def _served(settings: Settings, measures: Measures) -> AsyncIterator[None]:
    """The pages are there while the worker is, when there is a port for them."""
    worker = settings.worker
    if not worker.metrics_port:
        yield
        return
    endpoint = Endpoint(worker.metrics_host, worker.metrics_port, measures.pages)
    await endpoint.open()
    try:
        yield
    finally:
        await endpoint.close()
