"""The bytes of a connection on asyncio's own protocols: a read and a write cost one call each."""

from __future__ import annotations

import asyncio
import select
import ssl
from typing import Any, Final

import httpcore

BUFFERED_MAX: Final = 262_144
"""Bytes that wait to be read before the other side is told to stop."""


class _Bytes(asyncio.Protocol):
    """What has arrived and was not read yet. ``lost`` is set for good, with the error if there was one."""

    def __init__(self) -> None:
        self.arrived = bytearray()
        self.lost = self.ended = False
        self.transport: asyncio.Transport
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._full = self._paused = False
        self.error: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.arrived += data
        if len(self.arrived) > BUFFERED_MAX and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        _wake(self._reader)

    def eof_received(self) -> bool:
        self.ended = True
        _wake(self._reader)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost, self.error = True, exc
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        _wake(self._writer)

    async def read(self, count: int) -> bytes:
        while not self.arrived:
            if self.error is not None:
                raise httpcore.ReadError(str(self.error)) from self.error
            if self.lost or self.ended:
                return b""
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        found = bytes(self.arrived[:count])
        del self.arrived[:count]
        if self._paused and len(self.arrived) < BUFFERED_MAX // 2 and not self.lost:
            self._paused = False
            self.transport.resume_reading()
        return found

    async def write(self, data: bytes) -> None:
        if self.lost:
            raise httpcore.WriteError(str(self.error or "the connection is closed"))
        self.transport.write(data)
        while self._full and not self.lost:
            self._writer = asyncio.get_running_loop().create_future()
            try:
                await self._writer
            finally:
                self._writer = None


def _wake(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)


class Stream(httpcore.AsyncNetworkStream):
    """A connection as httpcore uses it. Deadlines are those of the caller: a timeout here has no effect."""

    def __init__(self, protocol: _Bytes) -> None:
        self._bytes = protocol

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's
        return await self._bytes.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's
        if buffer:
            await self._bytes.write(buffer)

    async def aclose(self) -> None:
        self._bytes.transport.close()

    def get_extra_info(self, info: str) -> Any:
        """``is_readable`` is what a pool asks of an idle connection: has the other side said or closed anything?"""
        if info == "is_readable":
            return self._bytes.lost or self._bytes.ended or bool(self._bytes.arrived) or self._has_news()
        return self._bytes.transport.get_extra_info(info)

    def _has_news(self) -> bool:
        """Does the kernel know something that the loop has not been told yet?"""
        socket = self._bytes.transport.get_extra_info("socket")
        if socket is None or socket.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(socket.fileno(), select.POLLIN)
        return bool(poll.poll(0))


async def connect(address: str, port: int, tls: ssl.SSLContext | None, host: str) -> Stream:
    """A connection to an address; with ``tls`` the certificate must be that of ``host``. Raises ``OSError``."""
    loop = asyncio.get_running_loop()
    _, protocol = await loop.create_connection(
        _Bytes, address, port, ssl=tls, server_hostname=host if tls is not None else None
    )
    return Stream(protocol)
