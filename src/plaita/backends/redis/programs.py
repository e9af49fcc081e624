"""Events that programs publish under the documented keys: heard on their channels, found in their indexes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from redis.exceptions import RedisError

from plaita.backends.redis.address import CONNECT_S, Address
from plaita.backends.redis.talk import Talk
from plaita.base.errors import Unavailable
from plaita.base.json import decode, encode

GIVEN_S: Final = 604_800
"""How long it is known to which wait an event was given; as long as an event is kept."""
CURSOR_S: Final = 604_800
TAKEN_MS: Final = 10_000
"""How long one process may take with an event that all of them heard."""
_SCANNED: Final = 1_000


class Programs:
    """The documented events of one Redis. Every method raises ``Unavailable``."""

    def __init__(self, talk: Talk, address: Address) -> None:
        self._talk, self._address = talk.aside(), address

    async def listen(self, tell: Callable[[bytes], Awaitable[None]]) -> None:
        """Call ``tell`` with each event that is published, one after another, as long as the connection lasts."""
        try:
            connection = await self._address.connection()
            try:
                await self._hear(connection, tell)
            finally:
                await connection.disconnect(nowait=True)
        except (RedisError, OSError, EOFError) as e:
            hint = "a user of its ACL needs +psubscribe and &plaita:events:*"
            raise Unavailable(f"published events of {self._talk.name} are not heard: {e}", hint) from None

    async def _hear(self, connection: Any, tell: Callable[[bytes], Awaitable[None]]) -> None:
        async with asyncio.timeout(CONNECT_S):
            await connection.connect()
            await connection.send_command("PSUBSCRIBE", self._talk.key("published_channels", "*"))
            await connection.read_response()
        while True:
            *_, message = await connection.read_response(disable_decoding=True)
            await tell(message)

    async def take(self, event_id: str) -> bool:
        """One process carries an event out; is it this one?"""
        key = self._talk.key("published_taken", event_id)
        return await self._talk.call("SET", key, 1, "NX", "PX", TAKEN_MS) is not None

    async def let_go(self, event_id: str) -> None:
        """The event may be taken again."""
        await self._talk.call("DEL", self._talk.key("published_taken", event_id))

    async def give(self, event_id: str, run_id: str, wait_id: str) -> str:
        """To which wait of an execution the event is given: this one, unless it was given before."""
        key = self._talk.key("published_given", event_id, run_id)
        before = await self._talk.call("SET", key, encode(wait_id), "NX", "GET", "EX", GIVEN_S)
        return wait_id if before is None else str(decode(before))

    async def my_turn(self, period_ms: int) -> bool:
        """One process looks for what was not heard in each period; is it this one now?"""
        return await self._talk.call("SET", self._talk.key("published_turn"), 1, "NX", "PX", period_ms) is not None

    async def cursor(self) -> str:
        """How far was looked: ``SECONDS`` or ``SECONDS|EVENT``; empty at first."""
        found = await self._talk.call("GET", self._talk.key("published_cursor"))
        return "" if found is None else found.decode(errors="replace")

    async def move(self, cursor: str) -> None:
        """From now on it was looked so far."""
        await self._talk.call("SET", self._talk.key("published_cursor"), cursor, "EX", CURSOR_S)

    async def between(self, begin: float, end: float, limit: int) -> list[tuple[float, str]]:
        """Times and ids of published events, both ends included, in order: the first ``limit`` of them."""
        found: list[tuple[float, str]] = []
        for key in await self._types():
            page = await self._talk.call(
                "ZRANGEBYSCORE", key, repr(begin), repr(end), "WITHSCORES", "LIMIT", 0, limit
            )  # fmt: skip
            found += [(float(page[i + 1]), page[i].decode(errors="replace")) for i in range(0, len(page), 2)]
        return sorted(found)[:limit]

    async def event(self, event_id: str) -> bytes | None:
        """The record of an event, JSON bytes."""
        found: bytes | None = await self._talk.foreign("GET", self._talk.key("published", event_id))
        return found

    async def _types(self) -> list[bytes]:
        pattern, cursor, found = self._talk.key("published_types", "*"), b"0", set[bytes]()
        while True:
            cursor, keys = await self._talk.call("SCAN", cursor, "MATCH", pattern, "COUNT", _SCANNED, "TYPE", "zset")
            found.update(keys)
            if cursor == b"0":
                return sorted(found)
