"""A process that does nothing but give published events to the executions that wait for them."""

from __future__ import annotations

import asyncio

from plaita.app import open_store, program_events
from plaita.base.errors import NotSupported
from plaita.server.worker.bridge import bridged, looking_of
from plaita.settings import Settings
from plaita.telemetry.sink import LogTelemetry


async def bridge(settings: Settings, stop: asyncio.Event) -> None:
    """Until ``stop`` is set. Raises ``NotSupported`` for a store beside which programs publish nothing."""
    store = open_store(settings)
    try:
        programs = program_events(store)
        if programs is None:
            raise NotSupported(f"programs publish events on Redis, not beside {store.name}", "plaita event publish")
        async with bridged(store, programs, LogTelemetry(), looking_of(settings.events)):
            await stop.wait()
    finally:
        await store.close()
