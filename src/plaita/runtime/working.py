"""A worker process: takes whatever is due in its queues until it is told to stop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from plaita.app import open_store, store_opener, strange_variables, worker_options
from plaita.base.errors import NotSupported
from plaita.server.worker.worker import Surroundings, Worker
from plaita.settings import Settings
from plaita.telemetry.events import SETTING_UNKNOWN, STORE_AT_RISK
from plaita.telemetry.sink import LogTelemetry


@dataclass(frozen=True, slots=True)
class Shift:
    """What a worker takes; ``concurrency`` ``None``: as the settings say."""

    queues: tuple[str, ...] = ("default",)
    concurrency: int | None = None


async def work(settings: Settings, shift: Shift, stop: asyncio.Event) -> None:
    """Work until ``stop`` is set, then let executions reach their next commit and give them back."""
    if settings.store.url == "memory:":
        raise NotSupported("a worker cannot share the store memory: with another process", "--store sqlite:///PATH")
    options = worker_options(settings, queues=shift.queues, concurrency=shift.concurrency)
    telemetry = LogTelemetry()
    for variable, hint in strange_variables().items():
        telemetry.emit(SETTING_UNKNOWN, variable=variable, hint=hint)
    store = open_store(settings)
    try:
        for risk in await store.risks():
            telemetry.emit(STORE_AT_RISK, store=store.name, risk=risk.message, hint=risk.hint)
        around = Surroundings(telemetry=telemetry)
        await Worker(store, options, around, renewal_opener=store_opener(settings)).run(stop)
    finally:
        await store.close()
