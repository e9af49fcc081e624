"""A client of Redis in each event loop that asks, and what of the server's errors programs see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from plaita.base.errors import EventStorageError
from plaita.node.network.loops import PerLoop


class _Client:
    """One client, closed with its loop."""

    def __init__(self, url: str) -> None:
        self.redis: Any = Redis.from_url(url, decode_responses=True)

    async def close(self) -> None:
        await self.redis.aclose()


class Server:
    """A Redis server. Connects when it is first asked."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._clients: PerLoop[_Client] = PerLoop()

    @asynccontextmanager
    async def ask(self) -> AsyncIterator[Any]:
        """The client of this loop. What the server refuses, or that it is away, is an ``EventStorageError``."""
        client = await self._clients.here(lambda: _Client(self._url))
        try:
            yield client.redis
        except (RedisError, OSError) as e:
            raise EventStorageError(f"Redis did not take it: {e}") from e

    async def close(self) -> None:
        """Close the client of this loop; asked again it connects again."""
        client = await self._clients.here(lambda: _Client(self._url))
        await client.close()
