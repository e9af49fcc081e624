"""What a worker process tells the outside while it works: pages for monitoring, a webhook for dead letters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from plaita.base.clock import SystemClock
from plaita.server.worker.alerts import AlertingTelemetry, Alerts, Sender
from plaita.server.worker.endpoint import Endpoint
from plaita.server.worker.measuring import Measures
from plaita.telemetry.sink import LogTelemetry, Telemetry


@dataclass(frozen=True, slots=True)
class Reports:
    """Where a worker reports, what was counted, and how many alerts still wait to be posted."""

    telemetry: Telemetry
    counting: LogTelemetry
    pending: Callable[[], int]


@asynccontextmanager
async def reporting(url: str, sender: Sender, *, counts: bool) -> AsyncIterator[Reports]:
    """Meanwhile dead letters are posted to ``url``; empty: nowhere. ``counts``: whether somebody reads the numbers."""
    counting = LogTelemetry(counts=counts)
    if not url:
        yield Reports(counting, counting, lambda: 0)
        return
    alerts = Alerts(url, sender, SystemClock(), counting)
    alerts.begin()
    try:
        yield Reports(AlertingTelemetry(counting, alerts), counting, lambda: alerts.pending)
    finally:
        await alerts.end()


@asynccontextmanager
async def served(host: str, port: int, measures: Measures) -> AsyncIterator[None]:
    """The pages are there meanwhile, when there is a port for them. Raises ``InputError`` for one that is taken."""
    if not port:
        yield
        return
    endpoint = Endpoint(host, port, measures.pages)
    await endpoint.open()
    try:
        yield
    finally:
        await endpoint.close()
