"""One connection to Redis. Commands of one tick of the event loop leave together; replies are read beside that."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from redis.asyncio import Connection, ConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)  # fmt: skip
from redis.retry import Retry

from plaita.backends.redis.scripts import Arg, Script
from plaita.base.errors import Unavailable

CONNECT_S = 5.0
REPLY_S = 10.0
"""How long a reply may take. A script is done in milliseconds; a server that is silent for longer is away."""
WATCH_S = 1.0
PACK_BYTES_MAX = 1_000_000
BUSY = ("LOADING", "MASTERDOWN", "BUSY", "MISCONF", "NOREPLICAS", "UNKILLABLE")
"""Words of the server that pass: a restart, a fail-over, a disk that is full."""
_LOGIN = re.compile(r"(?<=://)[^/\s]*@")
MISTAKE = "MISTAKE "
"""How a script says that its caller made a mistake: nothing was written."""


@dataclass(slots=True)
class _Sent:
    """A command and who waits for its reply; ``script`` when it may have to be sent with its text."""

    command: tuple[Arg, ...]
    answer: asyncio.Future[Any]
    script: Script | None
    at: float = 0.0


class Link:
    """A connection that is opened when it is first needed, and again after it was lost. Nothing is sent twice: what was
    under way when the connection broke is ``Unavailable``, and the caller decides. Belongs to one event loop."""

    def __init__(self, url: str) -> None:
        self.name = _LOGIN.sub("", url)
        self._pool = ConnectionPool.from_url(
            url, protocol=2, socket_connect_timeout=CONNECT_S, socket_timeout=None, retry=Retry(NoBackoff(), 0)
        )
        self._waiting: deque[_Sent] = deque()
        self._sent: deque[_Sent] = deque()
        self._connection: Connection | None = None
        self._sender: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[None] | None = None
        self._filled = asyncio.Event()

    def run(self, script: Script, args: Sequence[Arg]) -> asyncio.Future[Any]:
        """Run a script; its reply, or ``Unavailable``, ``ValueError`` for a caller's mistake."""
        return self._put(_Sent(("EVALSHA", script.sha, 0, *args), self._future(), script))

    def call(self, *command: Arg) -> asyncio.Future[Any]:
        """Send one command; its reply as bytes, numbers and lists."""
        return self._put(_Sent(command, self._future(), None))

    async def close(self) -> None:
        """Give the connection back; what still waits is ``Unavailable``."""
        for task in (self._sender, self._reader):
            if task is not None:
                task.cancel()
        await self._drop(Unavailable(f"the store {self.name} was closed"))

    @staticmethod
    def _future() -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    def _put(self, sent: _Sent) -> asyncio.Future[Any]:
        self._waiting.append(sent)
        self._filled.set()
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())
        return sent.answer

    async def _send(self) -> None:
        """Send what waits, as long as there is a connection to send it on."""
        loop = asyncio.get_running_loop()
        while True:
            await self._filled.wait()
            self._filled.clear()
            try:
                connection = await self._connected()
                while self._waiting:
                    batch = self._take(loop.time())
                    await connection.send_packed_command(
                        connection.pack_commands(cast(Any, [s.command for s in batch])), False
                    )
            except (RedisError, OSError, EOFError, TimeoutError) as e:
                await self._drop(self._unavailable(e))

    def _take(self, now: float) -> list[_Sent]:
        batch: list[_Sent] = []
        size = 0
        while self._waiting and size < PACK_BYTES_MAX:
            sent = self._waiting.popleft()
            if sent.answer.done():
                continue
            sent.at = now
            size += sum(len(arg) for arg in sent.command if isinstance(arg, str | bytes))
            batch.append(sent)
            self._sent.append(sent)
        return batch

    async def _connected(self) -> Connection:
        if self._connection is None:
            pool: Any = self._pool
            connection: Connection = pool.make_connection()
            await cast(Any, connection).connect()
            self._connection = connection
            self._reader = asyncio.create_task(self._read(connection))
        return self._connection

    async def _read(self, connection: Connection) -> None:
        """Give each reply to the command it belongs to: replies come in the order of the commands."""
        loop = asyncio.get_running_loop()
        watch = loop.call_later(WATCH_S, self._watch, connection)
        try:
            while True:
                try:
                    reply = await connection.read_response(disable_decoding=True, disconnect_on_error=False)
                except ResponseError as e:
                    reply = e
                self._deliver(self._sent.popleft(), reply)
        except (RedisError, OSError, EOFError, IndexError) as e:
            if self._connection is connection:
                await self._drop(self._unavailable(e))
        finally:
            watch.cancel()

    def _watch(self, connection: Connection) -> None:
        if self._connection is not connection:
            return
        loop = asyncio.get_running_loop()
        if self._sent and loop.time() - self._sent[0].at > REPLY_S:
            gone = Unavailable(f"the store {self.name} has not answered for {REPLY_S:.0f} s", "check the server")
            self._dropping = asyncio.create_task(self._drop(gone))
        else:
            loop.call_later(WATCH_S, self._watch, connection)

    def _deliver(self, sent: _Sent, reply: Any) -> None:
        if sent.answer.done():
            return
        if not isinstance(reply, ResponseError):
            sent.answer.set_result(reply)
            return
        if isinstance(reply, NoScriptError) and sent.script is not None:
            self._put(_Sent(("EVAL", sent.script.text, *sent.command[2:]), sent.answer, None))
            return
        sent.answer.set_exception(self._error(reply))

    def _error(self, error: ResponseError) -> Exception:
        text = str(error)
        if text.startswith(MISTAKE):
            return ValueError(text.removeprefix(MISTAKE))
        if isinstance(error, OutOfMemoryError):
            return Unavailable(
                f"the store {self.name} is full (maxmemory)", "raise maxmemory or prune ended executions"
            )
        if isinstance(error, AuthenticationError | NoPermissionError):
            return Unavailable(f"the store {self.name} refuses this user: {text}", "check user and password of the URL")
        if isinstance(error, ReadOnlyError) or text.startswith(BUSY):
            return Unavailable(f"the store {self.name} takes no writes now: {text}", "it is tried again")
        return RuntimeError(f"the store {self.name} answered: {text}")

    def _unavailable(self, error: BaseException) -> Unavailable:
        if isinstance(error, AuthenticationError):
            return Unavailable(
                f"the store {self.name} refuses this user: {error}", "check user and password of the URL"
            )
        return Unavailable(f"the store {self.name} cannot be reached: {error}", "check that redis-server runs there")

    async def _drop(self, why: Unavailable) -> None:
        """The connection is gone, and with it every reply that was under way."""
        connection, self._connection = self._connection, None
        reader, self._reader = self._reader, None
        left = [*self._sent, *self._waiting]
        self._sent.clear()
        self._waiting.clear()
        for sent in left:
            if not sent.answer.done():
                sent.answer.set_exception(why)
        if reader is not None and reader is not asyncio.current_task():
            reader.cancel()
        if connection is not None:
            try:
                await connection.disconnect(nowait=True)
            except (RedisError, OSError):
                return
