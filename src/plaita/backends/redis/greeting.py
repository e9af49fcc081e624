"""What a server says of itself when a connection is made: whether it can hold a store, and what it may lose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from redis.asyncio import Connection
from redis.exceptions import NoPermissionError

from plaita.base.errors import NotSupported, Unavailable
from plaita.ports.backend import Risk

LEAST: Final = (7, 0)
POLICY: Final = "noeviction"


@dataclass(frozen=True, slots=True)
class Server:
    """The part of ``INFO`` that matters; a field the server does not tell is empty."""

    version: str
    policy: str
    keeps_log: str
    role: str
    cluster: str
    loading: str

    def risks(self) -> list[Risk]:
        """Which accepted commits this server may lose without anybody noticing."""
        found = []
        if self.policy not in ("", POLICY):
            found.append(
                Risk(
                    f"Redis may evict what is stored: maxmemory-policy is {self.policy}",
                    f"CONFIG SET maxmemory-policy {POLICY}",
                )
            )
        if self.keeps_log == "0":
            found.append(
                Risk(
                    "a crash of Redis loses what was accepted since its last snapshot: appendonly is off",
                    "CONFIG SET appendonly yes",
                )
            )
        return found


async def greet(connection: Connection, name: str) -> Server | None:
    """Ask a new connection who is there; ``None`` when this user may not ask.

    Raises ``NotSupported`` for a server that cannot hold a store, ``Unavailable`` for one that cannot now.
    """
    await connection.send_command("INFO")
    try:
        reply = await cast(Any, connection).read_response(disable_decoding=True)
    except NoPermissionError:
        return None
    server = _server(reply)
    if server.cluster == "1":
        raise NotSupported(
            f"the store {name} is a node of a Redis Cluster, where the keys of one step lie on several machines",
            "use one Redis, with replicas and redis+sentinel:// for a fail-over",
        )
    if _version(server.version) < LEAST:
        wanted = ".".join(map(str, LEAST))
        raise NotSupported(
            f"the store {name} is Redis {server.version}; {wanted} or newer is needed", f"install Redis {wanted}"
        )
    if server.loading == "1":
        raise Unavailable(f"the store {name} is reading its data back after a start", "try again in a moment")
    if server.role == "slave":
        raise Unavailable(
            f"the store {name} is a replica and takes no writes", "name the master, or use redis+sentinel://"
        )
    return server


async def try_waiting(connection: Connection) -> None:
    """May this user wait for a replica? Raises ``NoPermissionError``: what is accepted would say so too late."""
    await connection.send_command("WAIT", 0, 0)
    await cast(Any, connection).read_response()


def _server(reply: bytes) -> Server:
    lines = (line.partition(":") for line in reply.decode(errors="replace").splitlines())
    said = {field: value for field, _, value in lines}
    fields = ("redis_version", "maxmemory_policy", "aof_enabled", "role", "cluster_enabled", "loading")
    return Server(*(said.get(field, "") for field in fields))


def _version(text: str) -> tuple[int, ...]:
    """Major and minor; what is no number is no reason to refuse."""
    parts = text.split(".")[:2]
    return tuple(int(part) for part in parts) if len(parts) == 2 and all(p.isdecimal() for p in parts) else LEAST
