"""A small HTTP/1.1 server in a thread of its own: answers what it is told to, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Seen:
    """One request."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first header of a name, in any case."""
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)


@dataclass(frozen=True)
class Reply:
    """An answer. ``raw`` is sent as it is in place of everything else; ``hang`` sends nothing; ``close`` hangs up."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    raw: bytes | None = None
    hang: bool = False
    close: bool = False

    def header(self, name: str) -> str | None:
        """The first header of a name, in any case."""
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)

    def wire(self, *, head_only: bool) -> bytes:
        """The bytes of it."""
        if self.raw is not None:
            return self.raw
        lines = [f"HTTP/1.1 {self.status} {PHRASES.get(self.status, 'Status')}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines.append(f"Content-Length: {len(self.body)}")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        return head if head_only else head + self.body


PHRASES = {200: "OK", 201: "Created", 204: "No Content", 404: "Not Found", 503: "Service Unavailable"}
Answering = Callable[[Seen], Reply]
JSON_TYPE = (("Content-Type", "application/json"),)


def as_json(value: object, status: int = 200) -> Reply:
    """A JSON answer."""
    return Reply(status, JSON_TYPE, json.dumps(value).encode())


def redirect(to: str, status: int = 302) -> Reply:
    """A redirect."""
    return Reply(status, (("Location", to),))


def echo(seen: Seen) -> Reply:
    """What was asked, as JSON."""
    return as_json(
        {"method": seen.method, "path": seen.path, "headers": dict(seen.headers), "body": seen.body.decode("latin-1")}
    )


@dataclass
class Stub:
    """A running server. ``seen`` and ``connections`` grow."""

    answering: Answering
    tls: ssl.SSLContext | None = None
    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    open_now: set[asyncio.Transport] = field(default_factory=set)
    on_lost: Callable[[], object] = lambda: None

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """A URL of it."""
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{path}"

    def names(self) -> set[str]:
        """Names of all headers it was sent, in lower case."""
        return {name.lower() for seen in self.seen for name, _ in seen.headers}


class _Speaker(asyncio.Protocol):
    def __init__(self, stub: Stub) -> None:
        self._stub, self._buffer = stub, b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._stub.connections += 1
        self._stub.open_now.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        assert self._transport is not None
        self._stub.open_now.discard(self._transport)
        self._stub.on_lost()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._answer_one():
            pass

    def _answer_one(self) -> bool:
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end or self._transport is None:
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in lines))
        length = int(next((value for name, value in headers if name.lower() == "content-length"), "0"))
        if len(rest) < length:
            return False
        self._buffer = rest[length:]
        method, path, _ = first.split(" ", 2)
        seen = Seen(method, path, headers, rest[:length])
        self._stub.seen.append(seen)
        reply = self._stub.answering(seen)
        if not reply.hang:
            self._transport.write(reply.wire(head_only=method == "HEAD"))
        if reply.close:
            self._transport.close()
        return True


@contextmanager
def serving(
    answering: Answering = echo, *, host: str | None = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> Iterator[Stub]:
    """A server on a free port until the block ends; ``host`` of ``None``: on all addresses of this machine."""
    stub, ready, loop = Stub(answering, tls), threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        server = await loop.create_server(
            lambda: _Speaker(stub), host, 0 if host else _free_port(), ssl=tls, backlog=1024
        )
        stub.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        server.close()
        for transport in list(stub.open_now):
            transport.abort()
        await server.wait_closed()

    def work() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=work, name="http-stub")
    thread.start()
    ready.wait(10)
    try:
        yield stub
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


def _free_port() -> int:
    """A port that is free on IPv4 and IPv6 alike."""
    import socket

    with socket.socket(socket.AF_INET) as probe:
        probe.bind(("", 0))
        found: int = probe.getsockname()[1]
        return found
