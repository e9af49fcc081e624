"""A store on a real Redis server for a world whose time is a number: its functions, called one after the other.

The server's clock is not used; every call carries the world's time. Commands of one turn of the loop go together, as on
a real connection, and have their answers before the loop takes its next turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import redis
from redis.exceptions import ResponseError

from plaita.backends.limits import Limits
from plaita.backends.memory.backend import MemoryRows
from plaita.backends.redis import RedisBackend
from plaita.backends.redis.codec import pairs
from plaita.backends.redis.link import UNKNOWN, called, packed
from plaita.backends.redis.refusals import MISTAKE
from plaita.backends.redis.scripts import Arg, Script
from plaita.backends.redis.snapshot import read_tables
from plaita.backends.redis.talk import Links, Talk
from plaita.backends.rows import Rows
from plaita.base.clock import Clock
from plaita.ports.inbox import Message
from plaita.testing.loop import VirtualLoop

T = TypeVar("T")
LOOKING = frozenset({"now", "next_due"})


class DirectLink:
    """In place of ``Link``: whoever asks has the reply in the next turn. ``writes`` counts verbs that may write."""

    def __init__(self, url: str) -> None:
        self.name, self.server, self.writes = url, None, 0
        # The connection of a client is used alone: what goes over it is packed as the shipped link packs it.
        self._client: Any = redis.Redis.from_url(url, protocol=2)
        self._connection: Any = self._client.connection_pool.get_connection()
        self._asked: list[tuple[bytes, Script | None, Sequence[Arg], asyncio.Future[Any]]] = []

    def run(self, script: Script, args: Sequence[Arg]) -> asyncio.Future[Any]:
        self.writes += script.name not in LOOKING
        return self._put(called(script, args), script, args)

    def call(self, *command: Arg) -> asyncio.Future[Any]:
        return self._put(packed(*command), None, ())

    async def close(self) -> None:
        self._client.connection_pool.release(self._connection)
        self._client.close()

    def _put(self, text: bytes, script: Script | None, args: Sequence[Arg]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        if not self._asked:
            loop.call_soon(self._exchange)
        self._asked.append((text, script, args, answer))
        return answer

    def _exchange(self) -> None:
        asked, self._asked = self._asked, []
        self._connection.send_packed_command([text for text, *_ in asked])
        replies = [self._reply() for _ in asked]
        for (text, script, _, answer), reply in zip(asked, replies, strict=True):
            if script is not None and isinstance(reply, ResponseError) and UNKNOWN in str(reply):
                self._connection.send_packed_command([packed("FUNCTION", "LOAD", "REPLACE", script.text), text])
                self._reply()
                reply = self._reply()
            if not isinstance(reply, ResponseError):
                answer.set_result(reply)
            elif str(reply).startswith(MISTAKE):
                answer.set_exception(ValueError(str(reply).removeprefix(MISTAKE)))
            else:
                answer.set_exception(RuntimeError(str(reply)))

    def _reply(self) -> Any:
        try:
            return self._connection.read_response(disable_decoding=True)
        except ResponseError as e:
            return e


class Watched:
    """The store as the auditor looks at it; ``writes`` is how often it may have changed."""

    def __init__(self, link: DirectLink, talk: Talk, clock: Clock) -> None:
        self._link, self._talk, self._clock = link, talk, clock
        self._loop = VirtualLoop()

    @property
    def writes(self) -> int:
        return self._link.writes

    def read(self, question: Callable[[Rows], T]) -> T:
        """Ask about everything the server holds."""
        tables = self._loop.run_until_complete(read_tables(self._talk))
        tables.inbox = {m.message_id: (n, m) for n, m in enumerate(self._loop.run_until_complete(self._inbox()))}
        return question(MemoryRows(tables, self._talk.limits, self._clock.now_ms()))

    async def _inbox(self) -> list[Message]:
        found = []
        for _, flat in await self._talk.call("XRANGE", self._talk.key("inbox"), "-", "+"):
            fields = pairs(flat)
            found.append(Message(fields["message_id"].decode(), fields["payload"], int(fields["at"])))
        return found


def store_on_redis(url: str, clock: Clock, limits: Limits) -> tuple[RedisBackend, Watched]:
    """An empty store at that URL, whatever was there before, and the way to look at it."""
    with redis.Redis.from_url(url) as client:
        client.flushall()
    store, link = RedisBackend(url, clock, limits=limits), DirectLink(url)
    links = Links(cast(Any, link), cast(Any, link), cast(Any, link))
    store._links = store._talk._links = links
    return store, Watched(link, store._talk, clock)
