"""Servers that tests need: started when first asked for, on a place of their own, stopped at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

PATIENCE_S = 10.0
SERVER = "redis-server"


@contextmanager
def redis_server(*options: str) -> Iterator[str]:
    """A Redis server on a socket of its own; its URL. Nothing is kept on disk unless the options say so."""
    if shutil.which(SERVER) is None:
        if os.environ.get("CI"):  # noqa: TID251 - whether a missing server is a failure
            pytest.fail(f"{SERVER} is not installed")
        pytest.skip(f"{SERVER} is not installed (Debian: apt-get install redis-server)")
    with tempfile.TemporaryDirectory(prefix="redis") as folder:
        socket = Path(folder) / "s"
        command = [
            SERVER, "--port", "0", "--unixsocket", str(socket), "--dir", folder, "--save", "", "--appendonly", "no",
            *options,
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _wait(f"unix://{socket}")
            yield f"unix://{socket}"
        finally:
            process.kill()
            process.wait()


def _wait(url: str) -> None:
    ends = time.monotonic() + PATIENCE_S
    with redis.Redis.from_url(url) as client:
        while True:
            try:
                client.ping()
            except redis.ConnectionError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.01)
            else:
                return


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
