"""One connection to Redis. Commands of one tick of the event loop leave together; replies are read beside that."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from hiredis import pack_command
from redis.asyncio import Connection
from redis.exceptions import (
    ReadOnlyError,
    RedisError,
    ResponseError,
)  # fmt: skip

from plaita.backends.redis.address import CONNECT_S, Address
from plaita.backends.redis.greeting import Server, greet, try_waiting
from plaita.backends.redis.refusals import error_of, gone, lost, unreachable
from plaita.backends.redis.scripts import Arg, Script
from plaita.base.errors import NotSupported, Unavailable

SILENT_MAX: Final = 10
"""So many looks in a row without a word while a reply is due, and the server is away. A script is done in milliseconds.
Looks are counted, not time, so that a process that was stopped itself reads what came meanwhile."""
LOOK_S: Final = 1.0
REST_S: Final = 0.05
"""Between two tries to connect."""
PACK_BYTES_MAX: Final = 1_000_000
UNKNOWN: Final = "Function not found"
"""The server lost its library, never had it, or another process removed it."""


@dataclass(slots=True)
class _Asked:
    """A command and who waits for its reply; ``script`` when the server may have to be given its library first."""

    packed: bytes
    answer: asyncio.Future[Any]
    script: Script | None = None
    args: Sequence[Arg] = ()
    loading: asyncio.Future[Any] | None = None
    """The last time the library was sent before this command."""


@dataclass(slots=True, eq=False)
class _Line:
    """An open connection and what is under way on it, in the order of the replies."""

    connection: Connection
    sent: deque[_Asked] = field(default_factory=deque)
    reader: asyncio.Task[None] | None = None
    heard: bool = False
    silent: int = 0


class Link:
    """A connection that is opened when it is first needed, and again after it was lost. Nothing is sent twice but what
    the server says it did not run: what was under way when the connection broke is ``Unavailable``, and the caller
    decides. What had not left yet leaves on the next connection.

    Belongs to the event loop that uses it; a forked process and a loop after the end of the first begin anew.
    ``server`` is what the other side said of itself, when it did. ``confirms``: replicas will be waited for.
    """

    def __init__(self, address: Address, *, confirms: bool = False) -> None:
        self.name, self._confirms = address.name, confirms
        self.server: Server | None = None
        self._address = address
        self._home: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._left: list[object] = []
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._waiting: deque[_Asked] = deque()
        self._filled = asyncio.Event()
        self._line: _Line | None = None
        self._loading: asyncio.Future[Any] | None = None
        self._sender: asyncio.Task[None] | None = None

    def run(self, script: Script, args: Sequence[Arg]) -> asyncio.Future[Any]:
        """Run a script; its reply, or ``Unavailable``, ``ValueError`` for a caller's mistake."""
        return self._put(_Asked(called(script, args), self._future(), script, args, self._loading))

    def call(self, *command: Arg) -> asyncio.Future[Any]:
        """Send one command; its reply as bytes, numbers and lists."""
        return self._put(_Asked(packed(*command), self._future()))

    @property
    def line(self) -> object:
        """The open connection, another one after it was lost; ``None`` while there is none."""
        return self._line

    async def close(self) -> None:
        """Give the connection back; what still waits, and whatever comes later, is ``Unavailable``."""
        self._closed = True
        if self._home != (os.getpid(), asyncio.get_running_loop()):
            return
        tasks = [] if self._sender is None else [self._sender]
        if self._line is not None:
            tasks += [] if self._line.reader is None else [self._line.reader]
            self._lose(self._line, gone(self.name))
        self._fail(self._waiting, gone(self.name))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _future(self) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        home = (os.getpid(), loop)
        if self._home != home:
            if self._home is not None and self._home[0] == home[0] and not self._home[1].is_closed():
                raise RuntimeError(f"the store {self.name} is used from two event loops; open it once for each")
            # Kept and not closed: they may be those of the process this one was forked from.
            self._left += [self._line, self._sender]
            self._home = home
            self._begin()
        return loop.create_future()

    def _put(self, asked: _Asked) -> asyncio.Future[Any]:
        if self._closed:
            asked.answer.set_exception(gone(self.name))
            return asked.answer
        self._waiting.append(asked)
        self._filled.set()
        if self._sender is None:
            self._sender = asyncio.create_task(self._send())
        return asked.answer

    async def _send(self) -> None:
        """Send what waits, as long as there is a connection to send it on."""
        waiting = self._waiting
        try:
            while True:
                await self._filled.wait()
                self._filled.clear()
                while waiting:
                    line = self._line or await self._open()
                    if line is None:
                        continue
                    batch = self._take(line)
                    try:
                        await line.connection.send_packed_command(batch, False)
                    except (RedisError, OSError) as e:
                        self._lose(line, lost(self.name, e))
        finally:
            self._fail(waiting, gone(self.name))
            if self._waiting is waiting:
                self._sender = None

    def _take(self, line: _Line) -> list[bytes]:
        """Commands as they go over the wire, up to a bound."""
        batch: list[bytes] = []
        size = 0
        while self._waiting and size < PACK_BYTES_MAX:
            asked = self._waiting.popleft()
            if asked.answer.done():
                continue
            batch.append(asked.packed)
            size += len(asked.packed)
            asked.packed = b""
            line.sent.append(asked)
        return batch

    async def _open(self) -> _Line | None:
        """A new connection; ``None`` when there is none to be had, and everybody who waits was told why."""
        why: Unavailable | NotSupported
        try:
            async with asyncio.timeout(CONNECT_S):
                connection = await self._greeted()
        except (Unavailable, NotSupported) as e:
            why = e
        except TimeoutError:
            why = unreachable(self.name, f"no answer within {CONNECT_S:.0f} s")
        except (RedisError, OSError, EOFError) as e:
            why = unreachable(self.name, e)
        else:
            self._line = line = _Line(connection)
            line.reader = asyncio.create_task(self._read(line))
            return line
        self._fail(self._waiting, why)
        await asyncio.sleep(REST_S)
        return None

    async def _greeted(self) -> Connection:
        connection = await self._address.connection()
        is_open = False
        try:
            await cast(Any, connection).connect()
            self.server = await greet(connection, self.name)
            if self._confirms:
                await try_waiting(connection)
            is_open = True
        except ResponseError as e:
            known = error_of(self.name, e)
            other = Unavailable(f"the store {self.name} refuses the connection: {e}", "check the URL")
            raise known if isinstance(known, Unavailable) else other from None
        finally:
            if not is_open:
                await _hang_up(connection)
        return connection

    async def _read(self, line: _Line) -> None:
        """Give each reply to the command it belongs to: replies come in the order of the commands."""
        why: object = "the connection ended"
        watch = asyncio.get_running_loop().call_later(LOOK_S, self._look, line)
        try:
            while True:
                try:
                    reply = await line.connection.read_response(disable_decoding=True, disconnect_on_error=False)
                except ResponseError as e:
                    reply = e
                line.heard = True
                self._deliver(line.sent.popleft(), reply)
                if isinstance(reply, ReadOnlyError):
                    # A replica now: the next connection goes to whoever is the master.
                    return
        except (RedisError, OSError, EOFError) as e:
            why = e
        except IndexError:
            why = "it sent a reply that nobody asked for"
        finally:
            watch.cancel()
            self._lose(line, lost(self.name, why))
            await _hang_up(line.connection)

    def _look(self, line: _Line) -> None:
        """Does the server still answer? A connection to one that is gone stays open."""
        if self._line is not line:
            return
        line.silent = line.silent + 1 if line.sent and not line.heard else 0
        line.heard = False
        if line.silent < SILENT_MAX:
            asyncio.get_running_loop().call_later(LOOK_S, self._look, line)
            return
        self._lose(line, lost(self.name, f"it has been silent for {SILENT_MAX * LOOK_S:.0f} s"))

    def _lose(self, line: _Line, why: Unavailable) -> None:
        """The connection is gone, and with it every reply that was under way."""
        if self._line is not line:
            return
        self._line = None
        if line.reader is not None and line.reader is not asyncio.current_task():
            line.reader.cancel()
        self._fail(line.sent, why)
        self._filled.set()

    @staticmethod
    def _fail(left: deque[_Asked], why: Unavailable | NotSupported) -> None:
        while left:
            answer = left.popleft().answer
            if not answer.done():
                answer.set_exception(type(why)(why.message, why.hint))

    def _deliver(self, asked: _Asked, reply: Any) -> None:
        if asked.answer.done():
            return
        if not isinstance(reply, ResponseError):
            asked.answer.set_result(reply)
        elif asked.script is not None and UNKNOWN in str(reply):
            self._load(asked, asked.script)
        else:
            asked.answer.set_exception(error_of(self.name, reply))

    def _load(self, asked: _Asked, script: Script) -> None:
        """Give the server the library, once for all calls under way, and call again: nothing of the call was done."""
        if self._loading is asked.loading:
            if asked.loading is not None and (why := asked.loading.exception()) is not None:
                self._loading = None
                asked.answer.set_exception(why)
                return
            self._loading = self._future()
            self._put(_Asked(packed("FUNCTION", "LOAD", "REPLACE", script.text), self._loading))
        self._put(_Asked(called(script, asked.args), asked.answer, script, asked.args, self._loading))


def called(script: Script, args: Sequence[Arg]) -> bytes:
    """A call as it goes over the wire."""
    return packed("FCALL", script.function, 0, *args)


def packed(*command: Arg) -> bytes:
    """A command as it goes over the wire."""
    found: bytes = pack_command(cast(Any, command))
    return found


async def _hang_up(connection: Connection) -> None:
    """Close at once: what a silent server has not taken yet would keep the connection open for ever."""
    writer = getattr(connection, "_writer", None)
    if writer is not None:
        writer.transport.abort()
    await connection.disconnect(nowait=True)
