"""Connections of one event loop: opened to a checked address, kept for the next request, closed with the loop.

httpx's own pool looks at every connection for every request, which is what several hundred requests at once are spent
on; here a host has a stack of idle connections, and taking one is a pop.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from functools import cache
from typing import Final

import httpcore

from plaita.base.clock import Clock, SystemClock
from plaita.base.errors import PolicyDenied
from plaita.node.network.addresses import Address
from plaita.node.network.failures import send_failed
from plaita.node.network.loops import PerLoop
from plaita.node.network.names import Lookup, Names, ask_system
from plaita.node.network.policy import Policy
from plaita.node.network.streams import connect
from plaita.node.network.urls import Url

KEPT_SECONDS: Final = 15.0
"""How long an idle connection is kept; most servers close theirs after more."""
KEPT_PER_SITE: Final = 200
CONNECT_SECONDS: Final = 5.0
"""After which another address of the same name is tried; the last one has all the time that is left."""
Site = tuple[str, str, int]


class Connection:
    """A connection and the address at its other end. ``used``: it has carried a request before."""

    __slots__ = ("address", "http", "idle_since", "site", "used")

    def __init__(self, http: httpcore.AsyncHTTP11Connection, site: Site, address: Address) -> None:
        self.http, self.site, self.address = http, site, address
        self.used, self.idle_since = False, 0.0


class Connections:
    """What one event loop has open. At most ``limit`` requests at once."""

    def __init__(self, limit: int, *, lookup: Lookup = ask_system, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self.names = Names(lookup, self._clock)
        self.turns = asyncio.Semaphore(limit)
        self._idle: dict[Site, list[Connection]] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    async def take(self, url: Url, policy: Policy, *, dns_ttl_seconds: float, fresh: bool = False) -> Connection:
        """A connection to an address that the policy allows; ``fresh``: no kept one.

        Raises ``FailureRaised``: 1002, ``policy_denied`` when the policy refuses the host or any address it has.
        """
        if not fresh and (kept := self._take_idle(url, policy)) is not None:
            return kept
        try:
            addresses = await self.names.addresses(url.name, dns_ttl_seconds)
        except (OSError, UnicodeError) as e:
            raise send_failed(f"{url.host!r} cannot be resolved: {e}") from None
        policy.check_addresses(url.host, addresses)
        return await self._open(url, addresses)

    def _take_idle(self, url: Url, policy: Policy) -> Connection | None:
        stack = self._idle.get(url.origin)
        while stack:
            # An idle connection that can be read from has been closed by the other side.
            if stack[-1].http.has_expired() or not stack[-1].http.is_idle():
                self._close(stack.pop())
                continue
            try:
                policy.check_addresses(url.host, (stack[-1].address,))
            except PolicyDenied:
                return None  # it was opened under another policy
            return stack.pop()
        return None

    async def _open(self, url: Url, addresses: Sequence[Address]) -> Connection:
        for address in addresses[:-1]:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await _connect(url, address)
            except OSError:
                continue
        return await _connect(url, addresses[-1])

    async def give_back(self, connection: Connection) -> None:
        """The request is over: keep the connection if it can carry another one, else close it."""
        if not connection.http.is_idle() or self._closed:
            await connection.http.aclose()
            return
        stack = self._idle.setdefault(connection.site, [])
        if len(stack) >= KEPT_PER_SITE:
            await connection.http.aclose()
            return
        connection.used, connection.idle_since = True, self._clock.elapsed_ms()
        stack.append(connection)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._close_idle)

    def _close_idle(self) -> None:
        """Close what nobody took for a while; look again as long as something is kept."""
        self._sweep = None
        before = self._clock.elapsed_ms() - KEPT_SECONDS * 1000
        for site, stack in list(self._idle.items()):
            fresh = [c for c in stack if c.idle_since > before]
            for connection in stack:
                if connection.idle_since <= before:
                    self._close(connection)
            if fresh:
                self._idle[site] = fresh
            else:
                del self._idle[site]
        if self._idle:
            self._sweep = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._close_idle)

    def _close(self, connection: Connection) -> None:
        task = asyncio.get_running_loop().create_task(connection.http.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close everything that is idle; what is under way closes by itself."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        self.names.close()
        idle = [connection for stack in self._idle.values() for connection in stack]
        self._idle.clear()
        for connection in idle:
            await connection.http.aclose()
        for task in list(self._closing):
            await task


async def _connect(url: Url, address: Address) -> Connection:
    stream = await connect(str(address), url.port, tls_context() if url.scheme == "https" else None, url.host)
    origin = httpcore.Origin(url.scheme.encode(), url.host.encode(), url.port)
    return Connection(httpcore.AsyncHTTP11Connection(origin, stream, KEPT_SECONDS), url.origin, address)


@cache
def tls_context() -> ssl.SSLContext:
    """Certificates are checked against the roots of certifi, or those of ``SSL_CERT_FILE``."""
    import httpx

    context = httpx.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


_connections: PerLoop[Connections] = PerLoop()


async def connections_here(limit: int) -> Connections:
    """The connections of the running loop; ``limit`` counts at the first call."""
    return await _connections.here(lambda: Connections(limit))
