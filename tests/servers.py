"""Servers that tests need: started when first asked for, on a place of their own, stopped at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

SERVER = "redis-server"
READY = "ready to accept connections"


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
            "--logfile", "",
            *options,
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            _await_ready(process)
            yield f"unix://{socket}"
        finally:
            process.kill()
            process.communicate()


def _await_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if READY in line.lower():
            return
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
