"""``RedisEventStorage``: events with an index of each type."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from plaita.event.core import Event, EventStorage
from plaita.event.redis import DEFAULT_EVENT_KEY_PREFIX, DEFAULT_EVENT_TTL_SECONDS, event_retention_ttl_seconds
from plaita.event.redis_client import Server

_AT_ONCE = 1_000
_STORE = """
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[4])
redis.call('EXPIRE', KEYS[2], math.max(redis.call('TTL', KEYS[2]), tonumber(ARGV[2])))
"""


class RedisEventStorage(EventStorage):
    """Events on Redis: ``events:ID`` holds one, ``types:TYPE`` the ids of a type by time, behind ``key_prefix``.

    They are kept for ``ttl`` seconds, those of ``PLAITA_EVENT_TTL_SECONDS`` when absent. Raises ``EventStorageError``.
    """

    DEFAULT_TTL = DEFAULT_EVENT_TTL_SECONDS

    def __init__(self, redis_url: str, key_prefix: str = DEFAULT_EVENT_KEY_PREFIX, ttl: int | None = None) -> None:
        self._server, self.key_prefix = Server(redis_url), key_prefix
        self.ttl = event_retention_ttl_seconds() if ttl is None else ttl

    async def initialize(self) -> None:
        """Connect now rather than at the first event."""
        async with self._server.ask() as client:
            await client.ping()

    async def close(self) -> None:
        """Let go of the connections of this loop."""
        await self._server.close()

    async def store_event(self, event: Event) -> str:
        async with self._server.ask() as client:
            keys = (self._record(event.event_id), f"{self.key_prefix}types:{event.event_type}")
            await client.eval(_STORE, 2, *keys, event.model_dump_json(), self.ttl, event.timestamp, event.event_id)
        return event.event_id

    async def batch_store_events(self, events: Sequence[Event]) -> list[str]:
        return list(await asyncio.gather(*(self.store_event(event) for event in events)))

    async def get_event(self, event_id: str) -> Event | None:
        async with self._server.ask() as client:
            text = await client.get(self._record(event_id))
        return None if text is None else Event.model_validate_json(text)

    async def list_events(
        self,
        event_type: str | None = None,
        start_time: float | None = None,
        end_time: float | None = None,
        limit: int = 100,
    ) -> list[Event]:
        low, high = ("-inf" if start_time is None else start_time), ("+inf" if end_time is None else end_time)
        found: list[tuple[float, str]] = []
        async with self._server.ask() as client:
            for key in [f"{self.key_prefix}types:{event_type}"] if event_type else await self._indexes():
                page = await client.zrangebyscore(key, low, high, start=0, num=limit, withscores=True)
                found += [(at, name) for name, at in page]
            names = [name for _, name in sorted(found)[:limit]]
            texts = await client.mget([self._record(name) for name in names]) if names else []
        return [Event.model_validate_json(text) for text in texts if text is not None]

    async def delete_event(self, event_id: str) -> bool:
        event = await self.get_event(event_id)
        if event is None:
            return False
        async with self._server.ask() as client:
            await client.zrem(f"{self.key_prefix}types:{event.event_type}", event_id)
            return bool(await client.delete(self._record(event_id)))

    def _record(self, event_id: str) -> str:
        return f"{self.key_prefix}events:{event_id}"

    async def _indexes(self) -> list[str]:
        async with self._server.ask() as client:
            return [key async for key in client.scan_iter(match=f"{self.key_prefix}types:*", count=_AT_ONCE)]
