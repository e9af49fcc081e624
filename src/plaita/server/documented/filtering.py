"""``EventFilter`` and ``EventReconciler``: events that programs publish reach the executions of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, ClassVar, Final

from plaita.base.clock import SystemClock
from plaita.event.core import Event, EventBus, EventStorage, EventSubscriptionStorage
from plaita.ports.backend import Backend
from plaita.ports.programs import Given
from plaita.server.documented.errors import StorageForeign
from plaita.server.worker.bridge import BATCH, Delivery, Looking, look, read_event
from plaita.settings import current_settings
from plaita.storage.base import ExecutionStorage
from plaita.storage.store import StoreExecutionStorage
from plaita.telemetry import LogTelemetry, Telemetry
from plaita.telemetry import events as told

CURSOR_TTL_SECONDS: Final = 604_800
_KNOWN_MAX: Final = 10_000


class EventFilter:
    """Gives each event to the execution that its ``correlation_id`` names: see ``Delivery``.

    ``execution_storage`` is that of a store, which knows who waits for what: ``subscription_storage``, ``queue_name``
    and the two parameters of timeouts have no effect. Workers on Redis do the same by themselves.
    """

    def __init__(
        self,
        execution_storage: ExecutionStorage,
        subscription_storage: EventSubscriptionStorage,
        redis_client: Any,
        event_bus: EventBus,
        queue_name: str = "plaita:flow:queue",
        enable_subscription_timeout_checker: bool = True,
        timeout_check_interval: float = 10.0,
        event_storage: EventStorage | None = None,
    ) -> None:
        """Raises ``StorageForeign`` for executions that no store moves."""
        if not isinstance(execution_storage, StoreExecutionStorage):
            cls = type(execution_storage)
            raise StorageForeign(
                f"an event filter cannot resume executions of {cls.__module__}.{cls.__qualname__}",
                "RedisExecutionStorage(…); with states in memory, FlowWorker.resume_flow(…, 'event', …) answers a wait",
            )
        self._bridge, self._bus = execution_storage.store, event_bus
        self._telemetry = LogTelemetry()
        self._once = _Once()
        self._stop = asyncio.Event()
        self._reconciler = None if event_storage is None else EventReconciler(event_storage, self, redis_client)

    async def handle_event(self, event: Event) -> None:
        """Carry one event out. Raises ``Unavailable``: then it may be said again."""
        await asyncio.to_thread(self._bridge.ask, self._deliver(event))

    async def start(self, event_type: str | None = None) -> None:
        """Hear the events of a type (nothing: all) from the bus until ``stop``."""
        self._stop.clear()
        handler_id = await self._bus.register_handler(event_type or None, self.handle_event)
        if self._reconciler is not None and not current_settings().events.no_reconcile:
            await self._reconciler.start()
        try:
            await self._stop.wait()
        finally:
            if self._reconciler is not None:
                await self._reconciler.stop()
            forget = getattr(self._bus, "unregister_handler", None)
            if forget is not None:
                await forget(handler_id)

    async def stop(self) -> None:
        """End ``start``."""
        self._stop.set()

    def _deliver(self, event: Event) -> Callable[[Backend], Any]:
        async def deliver(store: Backend) -> bool:
            return await Delivery(store, self._given(store), self._telemetry).deliver(event)

        return deliver

    def _given(self, store: Backend) -> Given:
        """On Redis all filters of a store know together what was given."""
        if store.name.partition(":")[0].removesuffix("+sentinel") not in ("redis", "rediss", "unix"):
            return self._once
        from plaita.backends.redis import RedisBackend

        return store.programs if isinstance(store, RedisBackend) else self._once


class _Once:
    """What this filter has given, the latest of it."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}

    async def take(self, event_id: str) -> bool:
        return True

    async def let_go(self, event_id: str) -> None:
        return None

    async def give(self, event_id: str, run_id: str, wait_id: str) -> str:
        found = self._given.setdefault((event_id, run_id), wait_id)
        while len(self._given) > _KNOWN_MAX:
            del self._given[next(iter(self._given))]
        return found


class EventReconciler:
    """Hands stored events to a filter that it may not have heard: those since the last scan, at most
    ``backfill_seconds`` back. How far it came is kept in Redis, if there is a client.

    A scan that fails moves nothing, and is repeated after ``interval_seconds`` while it is started.
    """

    CURSOR_KEY: ClassVar[str] = "plaita:event_reconcile:cursor"

    def __init__(
        self,
        event_storage: EventStorage,
        event_filter: Any,
        redis_client: Any = None,
        interval_seconds: float | None = None,
        backfill_seconds: float | None = None,
        batch_size: int = BATCH,
    ) -> None:
        events = current_settings().events
        self.interval_seconds = events.reconcile_seconds if interval_seconds is None else interval_seconds
        back_s = events.backfill_seconds if backfill_seconds is None else backfill_seconds
        self._how = Looking(round(self.interval_seconds * 1000), back_s, max(1, batch_size))
        self._stored = _Stored(event_storage, redis_client, self.CURSOR_KEY)
        self._filter = event_filter
        self._telemetry: Telemetry = LogTelemetry()
        self._task: asyncio.Task[None] | None = None

    async def scan_once(self) -> int:
        """How many events were handed over; 0 when something failed."""
        try:
            return await look(self._stored, self._handle, SystemClock().now_ms() / 1000, self._how)
        except Exception as e:  # noqa: BLE001 - storages, clients and filters are foreign code
            self._telemetry.emit(told.STORE_UNAVAILABLE, store="events", verb="reconcile", error=str(e))
            return 0

    async def start(self) -> None:
        """Scan now and then until ``stop``."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._scan_again())

    async def stop(self) -> None:
        """Scan no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _scan_again(self) -> None:
        while True:
            await self.scan_once()
            await asyncio.sleep(self.interval_seconds)

    async def _handle(self, raw: bytes) -> None:
        await self._filter.handle_event(read_event(raw))


class _Stored:
    """A storage of events as what is looked through; its cursor in Redis or here."""

    def __init__(self, storage: EventStorage, client: Any, key: str) -> None:
        self._storage, self._client, self._key = storage, client, key
        self._cursor = ""
        self._page: dict[str, bytes] = {}

    async def cursor(self) -> str:
        if self._client is None:
            return self._cursor
        found = await _awaited(self._client.get, self._key)
        return found.decode(errors="replace") if isinstance(found, bytes) else str(found or "")

    async def move(self, cursor: str) -> None:
        self._cursor = cursor
        if self._client is not None:
            await _awaited(self._client.set, self._key, cursor, CURSOR_TTL_SECONDS)

    async def between(self, begin: float, end: float, limit: int) -> list[tuple[float, str]]:
        found = await self._storage.list_events(None, begin, end, limit)
        self._page = {event.event_id: event.model_dump_json().encode() for event in found}
        return sorted((event.timestamp, event.event_id) for event in found)

    async def event(self, event_id: str) -> bytes | None:
        return self._page.get(event_id)


async def _awaited(call: Callable[..., Any], *args: Any) -> Any:
    """Ask a client of either kind without holding up the loop."""
    if asyncio.iscoroutinefunction(call):
        return await call(*args)
    answer = await asyncio.to_thread(call, *args)
    return await answer if isinstance(answer, Awaitable) else answer
