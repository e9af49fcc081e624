"""Servers that tests need: started when first asked for, on a place of their own, stopped at the end."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import redis

SERVER = "redis-server"
READY = "ready to accept connections"


class RedisServer:
    """A Redis server on a socket of its own in ``folder``, where it also keeps what the options say it keeps."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options = folder, options
        self.url = f"unix://{folder / 's'}"
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, or start it again on what it kept; returns when it answers."""
        command = [
            SERVER, "--port", "0", "--unixsocket", str(self.folder / "s"), "--dir", str(self.folder), "--save", "",
            "--appendonly", "no", "--logfile", "", *self.options,
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._reader = _await_ready(self._process)

    def kill(self) -> None:
        """Kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._reader is not None:
                self._reader.join()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None


@contextmanager
def redis_at(*options: str) -> Iterator[RedisServer]:
    """A running Redis server. Nothing is kept on disk unless the options say so."""
    if shutil.which(SERVER) is None:
        if os.environ.get("CI"):  # noqa: TID251 - whether a missing server is a failure
            pytest.fail(f"{SERVER} is not installed")
        pytest.skip(f"{SERVER} is not installed (Debian: apt-get install redis-server)")
    with tempfile.TemporaryDirectory(prefix="redis") as folder:
        server = RedisServer(Path(folder), *options)
        try:
            server.start()
            yield server
        finally:
            server.kill()


@contextmanager
def redis_server(*options: str) -> Iterator[str]:
    """A running Redis server; its URL."""
    with redis_at(*options) as server:
        yield server.url


@contextmanager
def redis_over_tcp(*options: str) -> Iterator[str]:
    """A running Redis server on a free port; its URL."""
    port = free_port()
    with redis_at("--port", str(port), "--bind", "127.0.0.1", *options):
        yield f"redis://127.0.0.1:{port}"


def free_port(count: int = 1) -> int:
    """A port that nobody listens on now, the first of so many beside one another."""
    while True:
        with ExitStack() as stack:
            port = _bind(stack, 0)
            try:
                for beside in range(port + 1, port + count):
                    _bind(stack, beside)
            except (OSError, OverflowError):
                continue
            return port


def _bind(stack: ExitStack, port: int) -> int:
    listening = stack.enter_context(socket.socket())
    listening.bind(("127.0.0.1", port))
    bound: int = listening.getsockname()[1]
    return bound


def _await_ready(process: subprocess.Popen[str]) -> threading.Thread:
    assert process.stdout is not None
    for line in process.stdout:
        if READY in line.lower():
            # What it says later is read too: a full pipe would stop the server.
            reader = threading.Thread(target=process.stdout.read, daemon=True)
            reader.start()
            return reader
    raise AssertionError(f"{SERVER} ended with {process.wait()} before it was ready")


@pytest.fixture(scope="session")
def redis_of_session() -> Iterator[str]:
    with redis_server() as url:
        yield url


@pytest.fixture
def redis_url(redis_of_session: str) -> str:
    """A Redis server with nothing in it."""
    with redis.Redis.from_url(redis_of_session) as client:
        client.flushall()
    return redis_of_session
