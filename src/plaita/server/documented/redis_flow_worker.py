"""``RedisFlowWorker``: a worker of a store on Redis inside a program."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from plaita.backends.configured import limits_of
from plaita.backends.limits import Streams
from plaita.base.clock import new_id
from plaita.base.duration import DAY_MS
from plaita.base.errors import InputError
from plaita.core.callback import FlowCallback
from plaita.event.core import EventBus
from plaita.policy.lease import plan_lease
from plaita.server.documented.flow_worker import FlowWorker
from plaita.server.execution_lease import ExecutionLease
from plaita.server.task_queue import DEFAULT_CONSUMER_GROUP
from plaita.server.worker import Surroundings, Worker, WorkerOptions
from plaita.server.worker import measuring as shown
from plaita.server.worker.alerts import Sender
from plaita.server.worker.bridge import bridged, looking_of
from plaita.server.worker.showing import reporting, served
from plaita.settings import current_settings
from plaita.settings.current import environment
from plaita.settings.declared import WorkerSettings
from plaita.storage.base import ExecutionStorage, FlowStorage
from plaita.storage.redis import redis_store, url_of
from plaita.telemetry.exposition import check_package

if TYPE_CHECKING:
    from plaita.backends.redis import RedisBackend

MIN_LEASE_S: Final = 3
_LOOK_MS = 100


@dataclass(slots=True)
class _Shift:
    """A worker while it works, and how it is told to stop from another thread."""

    worker: Worker
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event


class RedisFlowWorker(FlowWorker):
    """A ``FlowWorker`` whose ``run`` takes messages from the stream ``queue_name`` and moves whatever is due.

    ``redis_url`` or ``redis_client`` say where the store is. Of the other parameters ``consumer_group``,
    ``claim_min_idle_ms``, ``lease_ttl_seconds``, ``max_deliveries``, ``dlq_key``, ``concurrency``,
    ``callback_handlers``, ``metrics_port``, ``metrics_host`` and ``alert_webhook`` count; where they are ``None`` and
    for all else it is as the settings say. The rest is accepted and has no effect: the store announces its workers,
    tells them at once, and cuts what is cancelled. Raises ``InputError`` with everything that is wrong, and
    ``NotSupported`` for a ``metrics_port`` without the package that writes the page.
    """

    def __init__(
        self,
        redis_url: str,
        queue_name: str,
        execution_storage: ExecutionStorage,
        flow_storage: FlowStorage,
        event_bus: EventBus | None = None,
        cache_size: int = 100,
        cache_ttl: int = 300,
        enable_registry: bool = True,
        registry_ttl: int = 30,
        heartbeat_interval: int = 10,
        enable_redis_logging: bool = True,
        redis_client: Any = None,
        callback_handlers: Sequence[FlowCallback] | None = None,
        consumer_group: str = DEFAULT_CONSUMER_GROUP,
        consumer_name: str | None = None,
        claim_min_idle_ms: int = 60_000,
        lease_ttl_seconds: float | None = None,
        execution_lease: ExecutionLease | None = None,
        max_deliveries: int = 5,
        dlq_key: str | None = None,
        read_block_ms: int = 1_000,
        concurrency: int = 1,
        min_free_disk_gib: float | None = None,
        disk_guard_path: str | None = None,
        disk_guard_poll_seconds: float = 15.0,
        watchdog_interval_seconds: float | None = None,
        cancel_poll_seconds: float | None = None,
        residue_sweep_interval_seconds: float | None = None,
        metrics_port: int | None = None,
        metrics_host: str | None = None,
        alert_webhook: str | None = None,
    ) -> None:
        lease_s = current_settings().worker.lease_ttl_seconds if lease_ttl_seconds is None else lease_ttl_seconds
        super().__init__(
            execution_storage, flow_storage, event_bus, cache_size, cache_ttl, callback_handlers, execution_lease,
            max(1, int(lease_s)),
        )  # fmt: skip
        numbers = {"claim_min_idle_ms": claim_min_idle_ms, "max_deliveries": max_deliveries, "concurrency": concurrency}
        _check(queue_name, consumer_group, numbers, lease_s)
        self.redis_url = redis_url if redis_client is None else url_of({}, redis_client)
        self.queue_name, self.consumer_group = queue_name, consumer_group
        self.dlq_key = dlq_key or f"{queue_name}:dlq"
        self._concurrency = concurrency
        settings = current_settings()
        streams = Streams(queue_name, self.dlq_key, consumer_group, settings.store.consumer_group_start)
        self._limits = replace(
            limits_of(settings, environment(), streams),
            lease=plan_lease(round(lease_s * 1000)),
            deliveries_max=max_deliveries,
            claim_min_idle_ms=claim_min_idle_ms,
        )
        given = {"metrics_port": metrics_port, "metrics_host": metrics_host, "alert_webhook": alert_webhook}
        self._own = _with(settings.worker, given)
        self._shift: _Shift | None = None
        self._drains, self._ended = threading.Event(), threading.Event()

    @property
    def draining(self) -> bool:
        """Was it told to stop?"""
        return self._drains.is_set()

    @property
    def instance_id(self) -> str | None:
        """How the process is called in the store; ``None`` while it does not run."""
        return None if self._shift is None else self._shift.worker.holder

    def run(self, wait_for_inflight: bool = False) -> None:
        """Work until ``request_drain`` or ``stop``; then executions reach their next commit and are given back.

        ``wait_for_inflight`` has no effect: they are always waited for, as long as ``PLAITA_WORKER_DRAIN_TIMEOUT``.
        """
        try:
            asyncio.run(self._work())
        finally:
            self._shift = None
            self._ended.set()

    def request_drain(self, reason: str = "manual") -> None:
        """Take nothing new and end; from any thread."""
        self._drains.set()
        shift = self._shift
        if shift is not None:
            shift.loop.call_soon_threadsafe(shift.stop.set)

    def stop(self, wait: bool = False) -> None:
        """``request_drain``; ``wait``: return when ``run`` has ended."""
        self.request_drain("stop")
        if wait:
            self._ended.wait()

    def wait_for_idle(self, timeout: float | None = None) -> bool:
        """Wait until it holds no execution, at most ``timeout`` seconds; does it hold none?"""
        shift = self._shift
        if shift is None:
            return True
        return asyncio.run_coroutine_threadsafe(_idle(shift.worker, timeout), shift.loop).result()

    def _open(self) -> RedisBackend:
        return redis_store(self.redis_url, self._limits)

    async def _work(self) -> None:
        settings, store = current_settings(), self._open()
        options = WorkerOptions(
            concurrency=self._concurrency,
            pool_size=settings.worker.pool_size,
            imports=settings.imports,
            renew_ms=self._limits.lease.lease_ms * 3 // 10,
            drain_ms=settings.worker.drain_timeout_ms,
            timezone=settings.engine.timezone,
            active_ms_max=settings.engine.execution_deadline_ms,
            attempts_max=self._limits.deliveries_max,
            definition_change=settings.worker.definition_change,
            env=environment(),
            retention_ms=settings.store.retention_days * DAY_MS,
        )
        limits, holder = self._limits, new_id()
        sender = Sender(self.queue_name, self.dlq_key, limits.dlq_max, holder)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(store.close)
            reports = await stack.enter_async_context(
                reporting(self._own.alert_webhook, sender, counts=bool(self._own.metrics_port))
            )
            around = Surroundings(telemetry=reports.telemetry, callbacks=self.callback_handlers)
            worker = Worker(store, replace(options, holder=holder), around, renewal_opener=self._open)
            self._shift = _Shift(worker, asyncio.get_running_loop(), asyncio.Event())
            if self._drains.is_set():
                self._shift.stop.set()
            names = shown.Streams.of(limits, options.attempts_max)
            measures = shown.Measures(
                worker.presence, store, around.clock, reports.counting.readings, reports.pending, names
            )  # fmt: skip
            await stack.enter_async_context(served(self._own.metrics_host, self._own.metrics_port, measures))
            how = looking_of(settings.events)
            await stack.enter_async_context(bridged(store, store.programs, reports.telemetry, how))
            await worker.run(self._shift.stop)


def _with(worker: WorkerSettings, given: Mapping[str, Any]) -> WorkerSettings:
    """The settings with what is given. Raises ``NotSupported`` for pages that nothing can write."""
    found = replace(worker, **{name: value for name, value in given.items() if value is not None})
    if found.metrics_port:
        check_package()
    return found


def _check(queue_name: str, consumer_group: str, numbers: dict[str, int], lease_s: float) -> None:
    wrong = [f"{name} is text that is not empty" for name, text in
             (("queue_name", queue_name), ("consumer_group", consumer_group)) if not text.strip()]  # fmt: skip
    wrong += [f"{name} is 1 or more, not {number}" for name, number in numbers.items() if number < 1]
    wrong += [] if lease_s >= MIN_LEASE_S else [f"lease_ttl_seconds is {MIN_LEASE_S} or more, not {lease_s:g}"]
    if wrong:
        raise InputError("RedisFlowWorker", "; ".join(wrong))


async def _idle(worker: Worker, seconds: float | None) -> bool:
    try:
        async with asyncio.timeout(seconds):
            while worker.running:
                await worker.changed(_LOOK_MS)
    except TimeoutError:
        return False
    return True
