"""A real Redis server on a free port, as long as a test needs it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

PATIENCE_S = 10.0


@contextmanager
def redis_server(*options: str) -> Iterator[str]:
    """Its URL. Without the program the test is skipped; where everything must be tested it fails."""
    program = shutil.which("redis-server")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("redis-server is not installed")
        pytest.skip("redis-server is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _await_port(port, process)
            yield f"redis://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def _await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until somebody answers there, or the server died."""
    tick = threading.Event()
    for _ in range(int(PATIENCE_S / 0.02)):
        if process.poll() is not None:
            raise RuntimeError(f"redis-server ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            tick.wait(0.02)
    raise TimeoutError(f"redis-server does not listen on port {port}")
