"""A Redis that is away, stands still or slept together with everybody: nobody takes over.

``PLAITA_AWAY_SECONDS`` makes the outages longer, ``PLAITA_WORKERS`` the fleet larger.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from plaita.runtime import Runtime
from tests.servers import RedisServer, redis_at
from tests.support.fleet import wait_until
from tests.support.redis_fleet import (
    KEPT,
    LEASE_S,
    RedisFleet,
    await_effects,
    doubled,
    fleet_on,
    load_of,
    lost_of,
    settled,
)

WORKERS = int(os.environ.get("PLAITA_WORKERS", "4"))
AT_ONCE = 2
NODES = 8
AWAY_S = float(os.environ.get("PLAITA_AWAY_SECONDS", LEASE_S + 0.5))

pytestmark = pytest.mark.timeout(60 + int(AWAY_S))


@dataclass(frozen=True)
class Place:
    """A server, the workers on it, and a program that asks."""

    server: RedisServer
    fleet: RedisFleet
    runtime: Runtime


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("fleet")
    with redis_at(*KEPT) as server, fleet_on(server, folder, WORKERS, AT_ONCE) as fleet, fleet.runtime() as runtime:
        yield Place(server, fleet, runtime)


def let_time_pass() -> None:
    ends = time.monotonic() + AWAY_S
    wait_until(lambda: time.monotonic() >= ends, "longer than a lease", AWAY_S + 1)


def send(pids: Iterable[int], what: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, what)


@pytest.mark.parametrize("how", ["away", "stopped", "asleep"])
def test_nobody_takes_over_because_redis_did_not_answer_for_longer_than_a_lease(
    place: Place, tmp_path: Path, how: str
) -> None:
    executions = load_of(place.runtime, tmp_path, WORKERS * AT_ONCE, NODES, 0.1)
    await_effects(tmp_path, WORKERS * AT_ONCE)
    if how == "away":
        place.server.kill()
        let_time_pass()
        place.server.start()
    else:
        # A machine that sleeps takes the workers on it along.
        pids = [place.server.pid, *(place.fleet.processes if how == "asleep" else ())]
        send(pids, signal.SIGSTOP)
        let_time_pass()
        send(pids, signal.SIGCONT)
    views = settled(place.runtime, executions, tmp_path, NODES)
    assert lost_of(views) == 0
    assert doubled(tmp_path) == []
