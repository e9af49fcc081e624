"""A small HTTP server for the pages of one process: ``/metrics`` and ``/health``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from plaita.base.errors import InputError

PATIENCE_S: Final = 5.0
"""How long a client may take to send its request and to take the answer."""
CLIENTS_MAX: Final = 32
"""Further clients are answered 503: who looks must not keep the process from its work."""
REQUEST_BYTES_MAX: Final = 16_384
_REASONS: Final = {
    200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable",
}  # fmt: skip
TEXT: Final = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    status: int
    body: str
    content_type: str = TEXT


class Endpoint:
    """Serves GET and HEAD of known paths, one request a connection. ``port`` 0 takes a free one."""

    def __init__(self, host: str, port: int, pages: Mapping[str, Callable[[], Awaitable[Page]]]) -> None:
        self.host, self.port = host, port
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._clients = 0

    async def open(self) -> None:
        """Listen. Raises ``InputError`` when the address cannot be had."""
        try:
            self._server = await asyncio.start_server(self._serve, self.host, self.port, limit=REQUEST_BYTES_MAX)
        except OSError as e:
            reason = f"{self.host}:{self.port} cannot be listened on: {e.strerror or e}"
            raise InputError("PLAITA_METRICS_PORT", reason) from None
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Listen no more; answers under way are cut."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients += 1
        try:
            async with asyncio.timeout(PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._answer(head))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # Who does not speak HTTP, or goes away, gets nothing.
            return
        finally:
            self._clients -= 1
            writer.close()

    async def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        return _written(await self._page(method, path), with_body=method != "HEAD")

    async def _page(self, method: str, path: str) -> Page:
        if not path:
            return Page(400, "this is no request\n")
        if method not in ("GET", "HEAD"):
            return Page(405, "only GET is answered\n")
        if path not in self._pages:
            return Page(404, f"there are only {' and '.join(self._pages)}\n")
        if self._clients > CLIENTS_MAX:
            return Page(503, "too many clients at once\n")
        return await self._pages[path]()


async def check_ports(host: str, ports: Iterable[int]) -> None:
    """Raises ``InputError`` for the first one that cannot be listened on now."""
    for port in ports:
        endpoint = Endpoint(host, port, {})
        await endpoint.open()
        await endpoint.close()


def _written(page: Page, *, with_body: bool) -> bytes:
    body = page.body.encode()
    head = (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\nContent-Type: {page.content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\nCache-Control: no-store\r\n\r\n"
    )
    return head.encode("latin-1") + (body if with_body else b"")
