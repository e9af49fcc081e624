"""Workers and a Redis that die, stop, forget and cut connections: every execution completes, no effect is doubled but
what was in flight."""

from __future__ import annotations

import os
import signal
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import redis

from plaita.base.errors import Unavailable
from plaita.runtime.runtime import Execution
from tests.servers import redis_at
from tests.support.fleet import wait_until
from tests.support.redis_fleet import (
    KEPT,
    LEASE_S,
    all_completed,
    await_effects,
    doubled,
    effects,
    fleet_on,
    load_of,
    lost_of,
    settled,
)

pytestmark = pytest.mark.timeout(60)


def test_another_worker_goes_on_when_one_is_killed(tmp_path: Path, record_property: Any) -> None:
    with redis_at() as server, fleet_on(server, tmp_path, 2) as fleet, fleet.runtime() as runtime:
        executions = load_of(runtime, tmp_path, 12, 20, 0.05)
        await_effects(tmp_path, 60)
        victim = effects(tmp_path)[-1].pid
        fleet.kill(victim)
        killed_s = time.time()
        before = {line.key for line in effects(tmp_path) if line.pid == victim}
        views = settled(runtime, executions, tmp_path, 20)
        taken_s = max((taken_at(e) for e, view in zip(executions, views, strict=True) if view.lost), default=0.0)
    again = doubled(tmp_path)
    assert len(again) <= 8, f"more than the calls in flight: {again}"
    assert set(again) <= before
    record_property("takeover s", taken_s - killed_s)
    assert 0 < taken_s - killed_s < LEASE_S + 2


def taken_at(execution: Execution) -> float:
    """When a process took it last; seconds since 1970."""
    return max(datetime.fromisoformat(e["at"]).timestamp() for e in execution.history() if e["event"] == "claimed")


def test_a_redis_that_is_killed_and_started_again_costs_no_execution(tmp_path: Path) -> None:
    with redis_at(*KEPT) as server, fleet_on(server, tmp_path, 2) as fleet, fleet.runtime() as runtime:
        executions = load_of(runtime, tmp_path, 20, 10, 0.02)
        await_effects(tmp_path, 40)
        server.kill()
        server.start()
        views = settled(runtime, executions, tmp_path, 10)
    assert lost_of(views) == 0
    assert doubled(tmp_path) == []


def test_a_worker_that_was_stopped_past_its_lease_does_no_harm(tmp_path: Path) -> None:
    with redis_at() as server, fleet_on(server, tmp_path, 2) as fleet, fleet.runtime() as runtime:
        executions = load_of(runtime, tmp_path, 12, 20, 0.05)
        await_effects(tmp_path, 60)
        late = effects(tmp_path)[-1].pid
        os.kill(late, signal.SIGSTOP)
        held = {line.key for line in effects(tmp_path) if line.pid == late}
        wait_until(lambda: held & {x.key for x in effects(tmp_path) if x.pid != late} or _over(executions), "takeover")
        os.kill(late, signal.SIGCONT)
        views = settled(runtime, executions, tmp_path, 20)
    assert lost_of(views) > 0
    assert len(doubled(tmp_path)) <= 8, "more than the calls in flight"


def _over(executions: list[Execution]) -> bool:
    return all(execution.inspect()["status"] == "completed" for execution in executions)


def test_a_full_redis_takes_nothing_new_and_lets_what_runs_complete(tmp_path: Path) -> None:
    with redis_at() as server, fleet_on(server, tmp_path, 1) as fleet, fleet.runtime() as runtime:
        executions = load_of(runtime, tmp_path, 8, 10, 0.1)
        await_effects(tmp_path, 8)
        with redis.Redis.from_url(server.url) as client:
            client.config_set("maxmemory", "1mb")
            with pytest.raises(Unavailable, match="is full") as refused:
                load_of(runtime, tmp_path, 1, 10)
            with pytest.raises(Unavailable, match="is full"):
                runtime.publish_event("go", 1)
            settled(runtime, executions, tmp_path, 10)
            client.config_set("maxmemory", "0")
            all_completed(runtime, load_of(runtime, tmp_path, 1, 10))
    assert "maxmemory" in refused.value.hint


def test_a_redis_that_forgets_its_functions_is_told_them_again(tmp_path: Path) -> None:
    with redis_at() as server, fleet_on(server, tmp_path, 1) as fleet, fleet.runtime() as runtime:
        executions = load_of(runtime, tmp_path, 10, 10, 0.02)
        with redis.Redis.from_url(server.url) as client:
            for count in (10, 30, 60):
                await_effects(tmp_path, count)
                client.function_flush()
        views = settled(runtime, executions, tmp_path, 10)
    assert lost_of(views) == 0
    assert doubled(tmp_path) == []


def test_connections_that_are_cut_again_and_again_cost_no_execution(tmp_path: Path) -> None:
    with redis_at() as server, fleet_on(server, tmp_path, 2) as fleet, fleet.runtime() as runtime:
        executions = load_of(runtime, tmp_path, 20, 10, 0.01)
        with redis.Redis.from_url(server.url) as client:
            for count in range(10, 160, 5):
                await_effects(tmp_path, count)
                client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        views = settled(runtime, executions, tmp_path, 10)
    assert lost_of(views) == 0
    assert doubled(tmp_path) == []
