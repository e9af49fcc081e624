"""Hints: a message on a channel when something may have become due. One may be lost; nothing depends on it.

Messages of other channels come over the same connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from redis.exceptions import RedisError

from plaita.backends.redis.address import CONNECT_S, Address
from plaita.base.errors import Unavailable

REST_S = 1.0
"""Between two tries to listen while the server is away."""


class Hints:
    """Listens from the first ``wait`` or ``on_mail`` on, on a connection of its own."""

    def __init__(self, address: Address, channel: str) -> None:
        self._address, self._channel = address, channel
        self._stirred = asyncio.Event()
        self._tell: Callable[[str], None] | None = None
        self._others: dict[str, Callable[[bytes], None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._left: list[asyncio.Task[None]] = []

    async def wait(self, timeout_ms: int) -> None:
        """Return at a hint, or after the timeout."""
        self._begin()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._stirred.wait()
        except TimeoutError:
            return
        self._stirred.clear()

    def on_mail(self, tell: Callable[[str], None]) -> None:
        """Call ``tell`` with the ids of held runs that hints name."""
        self._tell = tell
        self._begin()

    def on_message(self, channel: str, tell: Callable[[bytes], None]) -> None:
        """Call ``tell`` with the messages of one more channel. Said before the first ``wait`` and ``on_mail``."""
        self._others[channel] = tell

    def _begin(self) -> None:
        if not self._listens():
            # Kept: it may be that of the process this one was forked from.
            self._left += [] if self._task is None else [self._task]
            self._stirred = asyncio.Event()
            self._task = asyncio.create_task(self._listen())

    async def close(self) -> None:
        """Stop listening."""
        if self._task is not None and self._listens():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _listens(self) -> bool:
        task = self._task
        return task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop()

    async def _listen(self) -> None:
        while True:
            try:
                connection = await self._address.connection()
                try:
                    await self._hear(connection)
                finally:
                    await connection.disconnect(nowait=True)
            except (RedisError, OSError, EOFError, Unavailable):
                await asyncio.sleep(REST_S)

    async def _hear(self, connection: Any) -> None:
        async with asyncio.timeout(CONNECT_S):
            await connection.connect()
            channels = [self._channel, *self._others]
            await connection.send_command("SUBSCRIBE", *channels)
            for _ in channels:
                await connection.read_response()
        while True:
            # What became due while nobody listened is seen by whoever asks now.
            self._stirred.set()
            _, channel, named = await connection.read_response(disable_decoding=True)
            if other := self._others.get(channel.decode()):
                other(named)
            elif named and self._tell is not None:
                for run_id in named.decode().split("\n"):
                    self._tell(run_id)
