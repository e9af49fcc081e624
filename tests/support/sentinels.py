"""A master, its replica and a Sentinel that watches both."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from plaita.base.errors import Unavailable
from plaita.runtime import Runtime
from tests.servers import RedisServer, free_port, redis_at
from tests.support.fleet import wait_until


@contextmanager
def replicated(folder: Path) -> Iterator[tuple[RedisServer, RedisServer, str]]:
    """Master and replica in step, and the URL that asks for the master."""
    first, second = free_port(), free_port()
    replica = ("--port", str(second), "--replicaof", f"127.0.0.1 {first}", "--repl-diskless-sync-delay", "0")
    with (
        redis_at("--port", str(first), "--repl-diskless-sync-delay", "0") as master,
        redis_at(*replica) as other,
        sentinel(folder, first) as port,
    ):
        wait_until(lambda: _replicas(port) and _in_step(other), "the Sentinel knows the replica")
        yield master, other, f"redis+sentinel://127.0.0.1:{free_port()},127.0.0.1:{port}/svc/0"


@contextmanager
def sentinel(folder: Path, master: int) -> Iterator[int]:
    port = free_port()
    config = folder / "sentinel.conf"
    config.write_text(
        f"port {port}\ndir {folder}\nsentinel monitor svc 127.0.0.1 {master} 1\n"
        "sentinel down-after-milliseconds svc 500\nsentinel failover-timeout svc 2000\n"
    )
    process = subprocess.Popen(["redis-server", str(config), "--sentinel"], stdout=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def _replicas(port: int) -> int:
    try:
        with redis.Redis(port=port) as client:
            [master] = client.sentinel_masters().values()
            return int(master["num-slaves"])
    except redis.ConnectionError:
        return 0


def _replication(server: RedisServer) -> dict[str, Any]:
    """What it says of its place; nothing while a fail-over cuts its connections."""
    try:
        with redis.Redis.from_url(server.url) as client:
            return dict(client.info("replication"))
    except redis.ConnectionError:
        return {}


def _in_step(server: RedisServer) -> bool:
    return bool(_replication(server).get("master_link_status") == "up")


def copied(master: RedisServer) -> None:
    """What was submitted has reached the replica: a fail-over does not lose it."""
    with redis.Redis.from_url(master.url) as client:
        client.set("probe", 1)
        assert client.wait(1, 5_000) == 1


def runtime_after(runtime: Runtime, other: RedisServer) -> Runtime:
    """The same runtime, once the replica has become the master."""

    wait_until(lambda: _replication(other).get("role") == "master", "the fail-over")
    wait_until(lambda: _answers(runtime), "the runtime has found the new master")
    return runtime


def _answers(runtime: Runtime) -> bool:
    try:
        return bool(runtime.ask(lambda store: store.now_ms()))
    except Unavailable:
        return False
