"""``RedisEventSubscriptionStorage``: who waits for what, with an index of each attribute."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from plaita.event.core import Event, EventSubscription, EventSubscriptionStorage
from plaita.event.redis import DEFAULT_EVENT_TTL_SECONDS
from plaita.event.redis_client import Server

DEFAULT_PREFIX = "plaita:subscription:"
_AT_ONCE = 1_000


class RedisEventSubscriptionStorage(EventSubscriptionStorage):
    """Subscriptions on Redis: ``data:ID`` holds one; ``type:``, ``correlation:``, ``flow:`` and ``node:`` are sets of
    ids, behind ``key_prefix``. They are kept for ``ttl`` seconds, a week when absent. Waits of executions of a store on
    that Redis are among them. Raises ``EventStorageError``."""

    DEFAULT_TTL = DEFAULT_EVENT_TTL_SECONDS

    def __init__(self, redis_url: str, key_prefix: str = DEFAULT_PREFIX, ttl: int | None = None) -> None:
        self._server, self.key_prefix = Server(redis_url), key_prefix
        self.ttl = self.DEFAULT_TTL if ttl is None else ttl

    async def initialize(self) -> None:
        """Connect now rather than at the first subscription."""
        async with self._server.ask() as client:
            await client.ping()

    async def close(self) -> None:
        """Let go of the connections of this loop."""
        await self._server.close()

    async def store_subscription(self, subscription: EventSubscription) -> str:
        async with self._server.ask() as client, client.pipeline(transaction=True) as batch:
            batch.set(self._data(subscription.subscription_id), subscription.model_dump_json(), ex=self.ttl)
            for key in self._indexes(subscription):
                batch.sadd(key, subscription.subscription_id)
                batch.expire(key, self.ttl)
            await batch.execute()
        return subscription.subscription_id

    async def get_subscription(self, subscription_id: str) -> EventSubscription | None:
        async with self._server.ask() as client:
            text = await client.get(self._data(subscription_id))
        return None if text is None else EventSubscription.model_validate_json(text)

    async def list_subscriptions(
        self,
        event_type: str | None = None,
        correlation_id: str | None = None,
        flow_id: str | None = None,
        node_id: str | None = None,
    ) -> list[EventSubscription]:
        """Without ``correlation_id`` all of them are looked at: a waiting execution is in that index alone."""
        prefix = self._data("")
        async with self._server.ask() as client:
            if correlation_id is not None:
                names = set(await client.smembers(f"{self.key_prefix}correlation:{correlation_id}"))
            else:
                keys = client.scan_iter(match=f"{prefix}*", count=_AT_ONCE)
                names = {key.removeprefix(prefix) async for key in keys}
        wanted = {"event_type": event_type, "correlation_id": correlation_id, "flow_id": flow_id, "node_id": node_id}
        found = await self._read(names)
        return [s for s in found if all(v is None or getattr(s, name) == v for name, v in wanted.items())]

    async def find_matching_subscriptions(
        self, event: Event, context: Mapping[str, Any] | None = None
    ) -> list[EventSubscription]:
        indexes = [f"{self.key_prefix}type:{event.event_type}"]
        if event.correlation_id is not None:
            indexes.append(f"{self.key_prefix}correlation:{event.correlation_id}")
        async with self._server.ask() as client:
            names = set(await client.sunion(indexes))
        return [s for s in await self._read(names) if s.matches_event(event, context)]

    async def _read(self, names: Collection[str]) -> list[EventSubscription]:
        """Those that are still there, in the order of their ids."""
        if not names:
            return []
        async with self._server.ask() as client:
            texts = await client.mget([self._data(name) for name in sorted(names)])
        return [EventSubscription.model_validate_json(text) for text in texts if text is not None]

    async def delete_subscription(self, subscription_id: str) -> bool:
        subscription = await self.get_subscription(subscription_id)
        if subscription is None:
            return False
        async with self._server.ask() as client, client.pipeline(transaction=True) as batch:
            for key in self._indexes(subscription):
                batch.srem(key, subscription_id)
            batch.delete(self._data(subscription_id))
            return bool((await batch.execute())[-1])

    async def mark_event_processed(self, subscription_id: str, event_id: str) -> bool:
        subscription = await self.get_subscription(subscription_id)
        if subscription is None:
            return False
        subscription.mark_event_processed(event_id)
        async with self._server.ask() as client, client.pipeline(transaction=True) as batch:
            batch.set(self._data(subscription_id), subscription.model_dump_json(), xx=True, keepttl=True)
            batch.set(f"{self.key_prefix}processed:{subscription_id}:{event_id}", "1", ex=self.ttl)
            return bool((await batch.execute())[0])

    def _data(self, subscription_id: str) -> str:
        return f"{self.key_prefix}data:{subscription_id}"

    def _indexes(self, subscription: EventSubscription) -> list[str]:
        values = {
            "type": subscription.event_type, "correlation": subscription.correlation_id,
            "flow": subscription.flow_id, "node": subscription.node_id,
        }  # fmt: skip
        return [f"{self.key_prefix}{name}:{value}" for name, value in values.items() if value is not None]
