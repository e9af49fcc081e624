"""``RedisEventBus``: events that every process on one Redis is told of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from plaita.base.errors import EventNotFoundError, EventStorageError
from plaita.base.tenancy import current_tenant
from plaita.event.core import (
    Event,
    EventBus,
    EventHandler,
    EventSubscription,
    Publishable,
    RetryPolicy,
    normalize_event,
)
from plaita.event.memory import InMemoryEventBus
from plaita.event.redis import DEFAULT_EVENT_KEY_PREFIX
from plaita.event.redis_client import Server
from plaita.event.redis_events import RedisEventStorage
from plaita.event.redis_subscriptions import DEFAULT_PREFIX, RedisEventSubscriptionStorage

CHANNEL: Final = "plaita:events:"
REST_S: Final = 1.0
_CONNECT_S: Final = 5.0


class RedisEventBus(EventBus):
    """A bus over Redis. An event is kept, and then said on the channel ``plaita:events:TYPE``; a store on the same
    Redis gives it to the execution that its ``correlation_id`` names.

    Handlers and ``wait_for_event`` of a process are told of what is said while it listens, which it does from
    ``initialize``, the first handler or the first wait on, in that loop. A handler that handled an id is not told of
    it again, unless it is published here with ``prevent_duplicate_consumption`` off. Raises ``EventStorageError``.
    """

    def __init__(
        self,
        redis_url: str,
        event_key_prefix: str = DEFAULT_EVENT_KEY_PREFIX,
        subscription_key_prefix: str = DEFAULT_PREFIX,
        processing_key_prefix: str = "plaita:processed:",
    ) -> None:
        """``processing_key_prefix`` has no effect: a process knows itself what its handlers have handled."""
        self._url, self._server = redis_url, Server(redis_url)
        self.event_storage = RedisEventStorage(redis_url, event_key_prefix)
        self.subscription_storage = RedisEventSubscriptionStorage(redis_url, subscription_key_prefix)
        self._here = InMemoryEventBus()
        self._again: set[str] = set()
        self._listening: asyncio.Task[None] | None = None

    async def initialize(self) -> None:
        """Listen from now on. Raises ``EventStorageError`` when the server is away."""
        task = self._listening
        if task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop():
            return
        heard = asyncio.Event()
        self._listening = asyncio.create_task(self._listen(heard))
        try:
            async with asyncio.timeout(_CONNECT_S):
                await heard.wait()
        except TimeoutError:
            self._listening.cancel()
            raise EventStorageError(f"Redis does not answer within {_CONNECT_S:g} s") from None

    async def close(self) -> None:
        """Listen no more."""
        task = self._listening
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for part in (self.event_storage, self.subscription_storage, self._server):
            await part.close()

    async def publish(self, event: Publishable, prevent_duplicate_consumption: bool = True, **data: Any) -> str:
        published = normalize_event(event, None, **data)
        if published.tenant_id is None:
            published = published.model_copy(update={"tenant_id": current_tenant()})
        if not prevent_duplicate_consumption:
            self._again.add(published.event_id)
        await self.event_storage.store_event(published)
        async with self._server.ask() as client:
            await client.publish(f"{CHANNEL}{published.event_type}", published.model_dump_json())
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
        handler_id = await self._here.register_handler(event_type, handler, filter_condition, retry_policy)
        await self.initialize()
        return handler_id

    async def unregister_handler(self, handler_id: str) -> bool:
        """Tell it no more; was it told?"""
        return await self._here.unregister_handler(handler_id)

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
        await self.initialize()
        return await self._here.wait_for_event(event_type, timeout, condition)

    async def drain(self) -> None:
        """Return when the handlers that this loop runs now have ended."""
        await self._here.drain()

    async def _listen(self, heard: asyncio.Event) -> None:
        while True:
            with suppress(RedisError, OSError):
                await self._hear(heard)
            await asyncio.sleep(REST_S)

    async def _hear(self, heard: asyncio.Event) -> None:
        async with Redis.from_url(self._url, decode_responses=True) as client, client.pubsub() as channels:
            await channels.psubscribe(f"{CHANNEL}*")
            async for message in channels.listen():
                if message["type"] == "psubscribe":
                    heard.set()
                elif message["type"] == "pmessage":
                    await self._tell(message["data"])

    async def _tell(self, text: str) -> None:
        try:
            event = Event.model_validate_json(text)
        except ValueError:
            return
        once = event.event_id not in self._again
        self._again.discard(event.event_id)
        await self._here.publish(event, once)
