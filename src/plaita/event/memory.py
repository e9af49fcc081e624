"""An event bus of this process, and storages that live as long as it. All of them may be used from several threads."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from plaita.base.clock import new_id
from plaita.base.errors import EventError, EventNotFoundError, EventStorageError, EventTimeoutError
from plaita.base.tenancy import current_tenant
from plaita.event.core import (
    Event,
    EventBus,
    EventHandler,
    EventStorage,
    EventSubscription,
    EventSubscriptionStorage,
    Publishable,
    RetryPolicy,
    fits,
    loop_runs,
    normalize_event,
)
from plaita.telemetry import LogTelemetry, Telemetry
from plaita.telemetry import events as told

EVENTS_MAX = 10_000
SUBSCRIPTIONS_MAX = 100_000


class MemoryEventStorage(EventStorage):
    """The latest events, 10,000 of them unless said otherwise; what goes for a newer one is counted."""

    def __init__(self, events_max: int = EVENTS_MAX, telemetry: Telemetry | None = None) -> None:
        self._max, self._telemetry = events_max, telemetry or LogTelemetry()
        self._lock = threading.Lock()
        self._events: OrderedDict[str, Event] = OrderedDict()

    async def store_event(self, event: Event) -> str:
        self.keep(event)
        return event.event_id

    def keep(self, event: Event) -> None:
        """``store_event`` where nothing can be awaited."""
        forgotten = None
        with self._lock:
            self._events[event.event_id] = event.model_copy(deep=True)
            if len(self._events) > self._max:
                _, forgotten = self._events.popitem(last=False)
        if forgotten is not None:
            self._telemetry.emit(told.EVENT_FORGOTTEN, event_type=forgotten.event_type, event_id=forgotten.event_id)

    async def get_event(self, event_id: str) -> Event | None:
        with self._lock:
            found = self._events.get(event_id)
        return None if found is None else found.model_copy(deep=True)

    async def list_events(
        self,
        event_type: str | None = None,
        start_time: float | None = None,
        end_time: float | None = None,
        limit: int = 100,
    ) -> list[Event]:
        with self._lock:
            kept = list(self._events.values())
        found = [
            e
            for e in kept
            if event_type in (None, e.event_type)
            and (start_time is None or e.timestamp >= start_time)
            and (end_time is None or e.timestamp <= end_time)
        ]
        found.sort(key=lambda e: e.timestamp)
        return [e.model_copy(deep=True) for e in found[:limit]]

    async def delete_event(self, event_id: str) -> bool:
        with self._lock:
            return self._events.pop(event_id, None) is not None


class InMemoryEventSubscriptionStorage(EventSubscriptionStorage):
    """Subscriptions in memory; more than 100,000 are refused."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: dict[str, EventSubscription] = {}

    async def store_subscription(self, subscription: EventSubscription) -> str:
        with self._lock:
            known = subscription.subscription_id in self._subscriptions
            if not known and len(self._subscriptions) >= SUBSCRIPTIONS_MAX:
                raise EventStorageError(f"{SUBSCRIPTIONS_MAX:,} subscriptions are open; unregister some")
            self._subscriptions[subscription.subscription_id] = subscription.model_copy(deep=True)
        return subscription.subscription_id

    async def get_subscription(self, subscription_id: str) -> EventSubscription | None:
        with self._lock:
            found = self._subscriptions.get(subscription_id)
            return None if found is None else found.model_copy(deep=True)

    async def list_subscriptions(
        self,
        event_type: str | None = None,
        correlation_id: str | None = None,
        flow_id: str | None = None,
        node_id: str | None = None,
    ) -> list[EventSubscription]:
        with self._lock:
            return [
                s.model_copy(deep=True)
                for s in self._subscriptions.values()
                if event_type in (None, s.event_type)
                and correlation_id in (None, s.correlation_id)
                and flow_id in (None, s.flow_id)
                and node_id in (None, s.node_id)
            ]

    async def delete_subscription(self, subscription_id: str) -> bool:
        with self._lock:
            return self._subscriptions.pop(subscription_id, None) is not None

    async def mark_event_processed(self, subscription_id: str, event_id: str) -> bool:
        with self._lock:
            found = self._subscriptions.get(subscription_id)
            if found is not None:
                found.mark_event_processed(event_id)
            return found is not None


@dataclass(frozen=True, slots=True)
class _Registered:
    """A handler and what it is told of."""

    handler_id: str
    event_type: str | None
    handler: EventHandler
    filter_condition: dict[str, Any] | None
    retry_policy: RetryPolicy | None


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """Somebody in ``wait_for_event``."""

    event_type: str
    condition: Callable[[Event], bool] | None
    answer: Future[Event]


class InMemoryEventBus(EventBus):
    """A bus of this process. It does not replay: who waits or is registered later is not told of what was.

    Handlers run as tasks of the publisher's loop; ``drain`` waits for them. A handler is told of an event id once it
    has handled it never again; one that failed for good is, when the event is published again.
    """

    def __init__(self, telemetry: Telemetry | None = None) -> None:
        self._telemetry = telemetry or LogTelemetry()
        self.event_storage = MemoryEventStorage(telemetry=self._telemetry)
        self.subscription_storage: EventSubscriptionStorage = InMemoryEventSubscriptionStorage()
        self._lock = threading.Lock()
        self._handlers: dict[str, _Registered] = {}
        self._waiters: list[_Waiter] = []
        self._handled: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    async def publish(self, event: Publishable, prevent_duplicate_consumption: bool = True, **data: Any) -> str:
        published = self._accept(event, data)
        self._dispatch(published, prevent_duplicate_consumption)
        return published.event_id

    def publish_sync(self, event: Publishable, prevent_duplicate_consumption: bool = True, **data: Any) -> str:
        """``publish`` from anywhere. Where no loop runs, the handlers have run when it returns."""
        published = self._accept(event, data)
        if loop_runs():
            self._dispatch(published, prevent_duplicate_consumption)
        else:
            asyncio.run(self._dispatched(published, prevent_duplicate_consumption))
        return published.event_id

    async def get_event(self, event_id: str) -> Event:
        found = await self.event_storage.get_event(event_id)
        if found is None:
            raise EventNotFoundError(event_id)
        return found

    async def register_handler(
        self,
        event_type: str | None = None,
        handler: EventHandler | None = None,
        filter_condition: dict[str, Any] | None = None,
        retry_policy: RetryPolicy | None = None,
    ) -> str:
        if handler is None:
            raise EventError("there is no handler to register")
        registered = _Registered(new_id(), event_type, handler, filter_condition, retry_policy)
        with self._lock:
            self._handlers[registered.handler_id] = registered
        return registered.handler_id

    async def unregister_handler(self, handler_id: str) -> bool:
        """Tell it no more; was it told?"""
        with self._lock:
            return self._handlers.pop(handler_id, None) is not None

    async def register_subscription(
        self,
        event_type: str,
        filter_condition: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        flow_id: str | None = None,
        node_id: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - kept with the subscription, not waited for
        tenant_id: str | None = None,
    ) -> str:
        subscription = EventSubscription(
            event_type=event_type,
            filter_condition=filter_condition,
            correlation_id=correlation_id,
            flow_id=flow_id,
            node_id=node_id,
            timeout=timeout,
            tenant_id=tenant_id,
        )
        return await self.subscription_storage.store_subscription(subscription)

    async def unregister_subscription(self, subscription_id: str) -> bool:
        return await self.subscription_storage.delete_subscription(subscription_id)

    async def wait_for_event(
        self,
        event_type: str,
        timeout: float | None = None,  # noqa: ASYNC109 - documented
        condition: Callable[[Event], bool] | None = None,
    ) -> Event:
        waiter = _Waiter(event_type, condition, Future())
        with self._lock:
            self._waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.wrap_future(waiter.answer)
        except TimeoutError:
            raise EventTimeoutError(event_type, timeout or 0) from None
        finally:
            with self._lock:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)

    async def drain(self) -> None:
        """Return when the handlers that this loop runs now have ended."""
        loop = asyncio.get_running_loop()
        with self._lock:
            mine = [task for task in self._tasks if task.get_loop() is loop]
        if mine:
            await asyncio.wait(mine)

    def _accept(self, event: Publishable, data: dict[str, Any]) -> Event:
        """Keep the event and let go who waits for it."""
        published = normalize_event(event, None, **data)
        if published.tenant_id is None:
            published = published.model_copy(update={"tenant_id": current_tenant()})
        self.event_storage.keep(published)
        with self._lock:
            waiting = [w for w in self._waiters if self.matches_event_type(w.event_type, published.event_type)]
        for waiter in waiting:
            self._answer(waiter, published.model_copy(deep=True))
        return published

    def _answer(self, waiter: _Waiter, event: Event) -> None:
        try:
            if waiter.condition is not None and not waiter.condition(event):
                return
            error = None
        except Exception as e:  # noqa: BLE001 - the condition is the waiter's own
            error = e
        with self._lock:
            if waiter not in self._waiters:
                return
            self._waiters.remove(waiter)
        if not waiter.answer.set_running_or_notify_cancel():
            return
        if error is None:
            waiter.answer.set_result(event)
        else:
            waiter.answer.set_exception(error)

    async def _dispatched(self, event: Event, once: bool) -> None:
        self._dispatch(event, once)
        await self.drain()

    def _dispatch(self, event: Event, once: bool) -> None:
        """Start the handlers of the event in the running loop."""
        with self._lock:
            handlers = [h for h in self._handlers.values() if self.matches_event_type(h.event_type, event.event_type)]
        for registered in handlers:
            if fits(event, registered.filter_condition) and self._takes(registered, event, once):
                self._start(self._handle(registered, event))

    def _takes(self, registered: _Registered, event: Event, once: bool) -> bool:
        """Mark the event as handled; the mark is taken back when the handler fails."""
        key = (registered.handler_id, event.event_id)
        with self._lock:
            if once and key in self._handled:
                return False
            self._handled[key] = None
            if len(self._handled) > EVENTS_MAX:
                self._handled.popitem(last=False)
        return True

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        with self._lock:
            self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        with self._lock:
            self._tasks.discard(task)

    async def _handle(self, registered: _Registered, event: Event) -> None:
        policy = registered.retry_policy or RetryPolicy(max_retries=1)
        attempts = max(1, policy.max_retries)
        handled = False
        try:
            for attempt in range(1, attempts + 1):
                error = await _told(registered.handler, event.model_copy(deep=True))
                if error is None:
                    handled = True
                    return
                if attempt < attempts:
                    await _pause(policy.delay(attempt))
            self._telemetry.emit(
                told.EVENT_HANDLER_FAILED,
                event_type=event.event_type,
                event_id=event.event_id,
                handler_id=registered.handler_id,
                attempts=attempts,
                error=f"{type(error).__name__}: {error}",
            )
        finally:
            if not handled:
                with self._lock:
                    self._handled.pop((registered.handler_id, event.event_id), None)


async def _told(handler: EventHandler, event: Event) -> Exception | None:
    """Call a handler; what it raised."""
    try:
        answer = handler(event)
        if inspect.isawaitable(answer):
            await answer
    except Exception as e:  # noqa: BLE001 - a handler is foreign code
        return e
    return None


async def _pause(seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await asyncio.get_running_loop().create_future()
    except TimeoutError:
        return
