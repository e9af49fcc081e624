"""``redis``: one command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import field_validator

from plaita.base.errors import NotSupported
from plaita.base.json import Json
from plaita.engine import steps
from plaita.engine.failure import NODE_CODE, Failure, FailureRaised
from plaita.node.basic import Node
from plaita.node.network.loops import PerLoop

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from plaita.engine.linking import NodeLink
    from plaita.engine.program import Eval

CLIENTS_MAX: Final = 8
CONNECTIONS_MAX: Final = 100
CONNECT_SECONDS: Final = 10.0
_REFUSED: Final = {
    **dict.fromkeys(("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR", "SYNC", "PSYNC"), "never ends"),
    **dict.fromkeys(("MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH"), "belongs to several commands; use EVAL"),
    **dict.fromkeys(("SELECT", "AUTH", "HELLO"), "is said in the target: redis://USER:PASSWORD@HOST:PORT/DB"),
    **dict.fromkeys(("QUIT", "RESET", "CLIENT"), "changes a connection that other nodes use too"),
}


class RedisNode(Node):
    """Sends one command to Redis; the reply is the result.

    ``target`` is `redis://USER:PASSWORD@HOST:PORT/DB` or `rediss://…`. ``arguments`` is a list, or text that is split
    at white space. Bytes of a reply are UTF-8 text. Commands that keep a connection (SUBSCRIBE, MULTI, SELECT and the
    like) are refused. With `$GLOBAL.dry_run` true nothing is sent. Needs `pip install 'plaita[redis]'`.
    """

    node_type: ClassVar[str] = "redis"
    node_name: ClassVar[str] = "Redis"
    async_node: ClassVar[bool] = True
    dry_run_safe: ClassVar[bool | None] = False
    builtin: ClassVar[bool] = True

    target: Any
    command: Any
    arguments: Any = None

    @field_validator("target", "command")
    @classmethod
    def _text(cls, value: Any) -> Any:
        if not isinstance(value, str) or not value.strip():
            raise ValueError("write text that is not blank")
        return value

    @field_validator("arguments")
    @classmethod
    def _arguments(cls, value: Any) -> Any:
        if value is not None and not isinstance(value, str | list):
            raise ValueError(f"{value!r} is neither a list nor text")
        return value

    def link(self, link: NodeLink) -> None:
        evals: dict[str, Eval] = {
            name: link.value(getattr(self, name), name) for name in ("target", "command", "arguments")
        }
        evals["dry_run"] = link.value("$GLOBAL.dry_run", "")
        link.linking.calls = True
        link.cn.arguments = lambda scope: {name: value(scope) for name, value in evals.items()}
        link.cn.step = steps.call(link.cn)

    def shown(self, arguments: Json) -> Json:
        return {
            "target": _shown_target(arguments["target"]),
            "command": arguments["command"],
            "arguments": arguments["arguments"],
        }

    async def arun(self, execution: Any) -> Json:
        given = execution.arguments()
        name, *words = read_command(given["command"], given["arguments"])
        target = read_target(given["target"])
        if given["dry_run"] is True:
            return {"dry_run": True, "skipped": "redis", "command": name}
        package = _package()
        clients = await _clients.here(Clients)
        try:
            async with clients.client(target) as client:
                reply = await client.execute_command(name, *words)  # type: ignore[no-untyped-call]
        except package.ResponseError as e:
            raise failed(f"{name} at {_shown_target(target)} was refused: {e}") from None
        except (package.RedisError, OSError) as e:
            text = f"{name} at {_shown_target(target)} failed: {type(e).__name__}: {e}"
            raise failed(text, retryable=True) from None
        return as_json(reply, str(name))


def failed(what: str, *, retryable: bool = False) -> FailureRaised:
    """How the node fails."""
    return FailureRaised(Failure("node_error", NODE_CODE, what, retryable=retryable))


def read_target(value: Json) -> str:
    """A URL with a host. Raises ``FailureRaised``."""
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        sound = parts.scheme in ("redis", "rediss") and parts.hostname and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise failed(f"target is {_shown_target(value)!r}; write redis://HOST:PORT/DB")
    return str(value)


def _shown_target(value: Json) -> Json:
    """A target without user and password."""
    if not isinstance(value, str) or "@" not in value:
        return value
    scheme, _, rest = value.partition("://")
    return f"{scheme}://***@{rest.rpartition('@')[2]}"


def read_command(command: Json, arguments: Json) -> list[str | int | float]:
    """The words of a command. Raises ``FailureRaised``."""
    if not isinstance(command, str) or not command.strip():
        raise failed(f"command is {command!r}, not the name of a command")
    words: list[str | int | float] = [*command.split()]
    name = str(words[0]).upper()
    if name in _REFUSED:
        raise failed(f"{name} {_REFUSED[name]}")
    return [name, *words[1:], *_words(arguments)]


def _words(arguments: Json) -> list[str | int | float]:
    if arguments is None:
        return []
    if isinstance(arguments, str):
        return [*arguments.split()]
    if not isinstance(arguments, list):
        return [_word(arguments)]
    return [_word(one) for one in arguments]


def _word(value: Json) -> str | int | float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise failed(f"an argument is {value!r}; write text or a number, objects as $F.json_dumps(…)")
    return value


def as_json(reply: object, command: str) -> Json:
    """A reply as JSON: bytes are text, tuples and sets are lists, times are ISO 8601. Raises ``FailureRaised``."""
    match reply:
        case bytes():
            try:
                return reply.decode()
            except UnicodeDecodeError:
                raise failed(f"the reply of {command} holds bytes that are no UTF-8 text") from None
        case dict():
            return {_key(as_json(key, command)): as_json(value, command) for key, value in reply.items()}
        case list() | tuple():
            return [as_json(one, command) for one in reply]
        case set() | frozenset():
            return sorted((as_json(one, command) for one in reply), key=str)
        case datetime() | date():
            return reply.isoformat()
        case Exception():
            raise failed(f"{command} was refused: {reply}")
        case _:
            return reply


def _key(value: Json) -> str:
    return value if isinstance(value, str) else str(value)


class Clients:
    """The clients of one event loop, by target. Idle ones beyond ``CLIENTS_MAX`` are closed, the oldest first."""

    def __init__(self) -> None:
        self._clients: dict[str, tuple[Redis, set[object]]] = {}

    def __len__(self) -> int:
        return len(self._clients)

    @asynccontextmanager
    async def client(self, target: str) -> AsyncIterator[Redis]:
        """The client of a target while the block lasts."""
        client, users = self._clients.pop(target) if target in self._clients else (_connect(target), set())
        self._clients[target] = (client, users)
        me = object()
        users.add(me)
        try:
            yield client
        finally:
            users.discard(me)
            await asyncio.shield(self._close_some())

    async def _close_some(self) -> None:
        for target, (client, users) in list(self._clients.items()):
            if len(self._clients) > CLIENTS_MAX and not users:
                del self._clients[target]
                await client.aclose()

    async def close(self) -> None:
        """Close all of them."""
        clients, self._clients = self._clients, {}
        for client, _ in clients.values():
            await client.aclose()


_clients: PerLoop[Clients] = PerLoop()


def _package() -> Any:
    try:
        import redis
    except ImportError:
        raise NotSupported(
            "the package redis is not installed, and a redis node needs it", "pip install 'plaita[redis]'"
        ) from None
    return redis


def _connect(target: str) -> Redis:
    """A client that never sends a command twice: whether it may be repeated is for the flow to say."""
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    pool = BlockingConnectionPool.from_url(
        target,
        max_connections=CONNECTIONS_MAX,
        timeout=None,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=None,
        socket_connect_timeout=CONNECT_SECONDS,
        protocol=2,
    )
    return Redis.from_pool(pool)
