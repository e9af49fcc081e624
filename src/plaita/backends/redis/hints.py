"""Hints: a message on a channel when something may have become due. One may be lost; nothing depends on it."""

from __future__ import annotations

import asyncio

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

REST_S = 1.0
"""Between two tries to listen while the server is away."""


class Hints:
    """Listens from the first ``wait`` on."""

    def __init__(self, url: str, channel: str) -> None:
        self._url, self._channel = url, channel
        self._stirred = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def wait(self, timeout_ms: int) -> None:
        """Return at a hint, or after the timeout."""
        if self._task is None:
            self._task = asyncio.create_task(self._listen())
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._stirred.wait()
        except TimeoutError:
            return
        self._stirred.clear()

    async def close(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _listen(self) -> None:
        while True:
            client = Redis.from_url(self._url, protocol=2, retry=Retry(NoBackoff(), 0), socket_timeout=None)
            try:
                async with client.pubsub() as channel:
                    await self._hear(channel)
            except (RedisError, OSError):
                await asyncio.sleep(REST_S)
            finally:
                await client.aclose()

    async def _hear(self, channel: PubSub) -> None:
        await channel.subscribe(self._channel)
        # What became due while nobody listened is seen by whoever asks now.
        self._stirred.set()
        async for _ in channel.listen():
            self._stirred.set()
