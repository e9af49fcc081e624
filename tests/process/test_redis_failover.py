"""A fail-over to a replica that lags: what came after the cut is gone, what came before goes on."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
import redis

from plaita.base.errors import NotFound
from plaita.runtime.runtime import Execution
from tests.servers import RedisServer, free_port
from tests.support.redis_fleet import (
    LEASE_S,
    RedisFleet,
    all_completed,
    await_effects,
    effects,
    histories_are_single,
    load_of,
)
from tests.support.sentinels import copied, replicated, runtime_after

RUNS = 4
NODES = 20

pytestmark = pytest.mark.timeout(90)


def cut_off(replica: RedisServer) -> None:
    """From now on it hears nothing of its master."""
    with redis.Redis.from_url(replica.url) as client:
        client.replicaof("127.0.0.1", free_port())


def generations(execution: Execution) -> list[int]:
    return [entry["generation"] for entry in execution.history() if entry["event"] == "claimed"]


def test_what_a_lagging_replica_does_not_know_is_gone_and_the_rest_goes_on_under_the_same_keys(tmp_path: Path) -> None:
    (tmp_path / "late").mkdir()
    with replicated(tmp_path) as (master, replica, url), (tmp_path / "log").open("w") as log:
        fleet = RedisFleet(tmp_path, ("--concurrency", str(RUNS)), url=url, lease_s=LEASE_S)
        fleet.start_workers(2, stderr=log)
        with fleet.runtime() as runtime:
            executions = load_of(runtime, tmp_path, RUNS, NODES, 0.05)
            await_effects(tmp_path, 3 * RUNS)
            copied(master)
            cut_off(replica)
            cut_ns = time.monotonic_ns()
            [late] = load_of(runtime, tmp_path / "late", 1, 1)
            await_effects(tmp_path, len(effects(tmp_path)) + 4 * RUNS)
            master.kill()
            all_completed(runtime_after(runtime, replica), executions)
            histories_are_single(executions)
            assert runtime.ask(lambda store: store.audit()) == []
            with pytest.raises(NotFound):
                late.inspect()
            claims = [generations(execution) for execution in executions]
        fleet.stop()
    lines = effects(tmp_path)
    times = Counter(line.key for line in lines)
    assert len(times) == RUNS * NODES
    first = {line.key: line.at_ns for line in reversed(lines)}
    early = [key for key, count in times.items() if count > 1 and first[key] < cut_ns]
    assert len(early) <= RUNS, "more than what was under way at the cut"
    assert max(times.values()) <= 2
    assert claims == [sorted(set(given)) for given in claims]
    assert "store_rewound" in (tmp_path / "log").read_text()
