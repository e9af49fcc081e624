"""From a host to addresses: asked once for all who want it at the same time, kept for a while."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from plaita.base.clock import Clock
from plaita.node.network.addresses import Address, numeric_host, read_address

Lookup: TypeAlias = Callable[[str], Awaitable[list[str]]]
"""The addresses of a name as text, the preferred one first; raises ``OSError`` when there are none."""

NAMES_MAX = 4_096


async def ask_system(name: str) -> list[str]:
    """What the resolver of the system says; it runs in the loop's pool."""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Names:
    """Addresses of hosts. Kept answers save questions only: whoever connects checks every address every time."""

    def __init__(self, lookup: Lookup, clock: Clock) -> None:
        self._lookup, self._clock = lookup, clock
        self._kept: dict[str, tuple[float, list[Address]]] = {}
        self._asked: dict[str, asyncio.Task[list[Address]]] = {}

    async def addresses(self, host: str, ttl_seconds: float) -> list[Address]:
        """Every address of a host, at least one. ``ttl_seconds`` of 0 keeps nothing. Raises ``OSError``."""
        spelled = numeric_host(host)
        if spelled is not None:
            return [spelled]
        kept = self._kept.get(host)
        if kept is not None and ttl_seconds > 0 and self._clock.elapsed_ms() < kept[0]:
            return kept[1]
        task = self._asked.get(host)
        if task is None:
            task = self._asked[host] = asyncio.create_task(self._ask(host))
            task.add_done_callback(lambda done: self._answered(host, done))
        # Whoever gives up must not take the answer from the others.
        found = await asyncio.shield(task)
        if ttl_seconds > 0:
            if len(self._kept) >= NAMES_MAX:
                self._kept.clear()
            self._kept[host] = (self._clock.elapsed_ms() + ttl_seconds * 1000, found)
        return found

    async def _ask(self, host: str) -> list[Address]:
        found = [read_address(text) for text in await self._lookup(host)]
        if not found:
            raise OSError(f"{host!r} has no address")
        return found

    def _answered(self, host: str, task: asyncio.Task[list[Address]]) -> None:
        self._asked.pop(host, None)
        if not task.cancelled():
            task.exception()  # when nobody waits any more, nobody else looks at it

    def close(self) -> None:
        """Nobody waits for an answer any more."""
        for task in self._asked.values():
            task.cancel()
