"""What keeps what was accepted: the server alone, or a replica too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from plaita.backends.limits import Limits
from plaita.backends.redis import RedisBackend
from plaita.ports.runs import End, Keep, Submitted
from plaita.ports.values import RunId
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.stage import WAIT, Stage, start
from tests.servers import RedisServer, free_port, redis_at
from tests.support.fleet import wait_until

CONFIRM_MS = 2_000
"""As long as a busy machine takes to copy one write."""


@pytest.fixture
def pair() -> Iterator[tuple[RedisServer, RedisServer]]:
    """A master, and a replica that follows it."""
    port = free_port()
    with (
        redis_at("--port", str(port), "--repl-diskless-sync-delay", "0") as master,
        redis_at("--replicaof", f"127.0.0.1 {port}") as replica,
    ):
        client: Any = redis.Redis.from_url(replica.url)
        wait_until(lambda: client.info("replication")["master_link_status"] == "up", "the replica follows")
        client.close()
        yield master, replica


def stage_on(url: str, confirm_ms: int) -> Stage:
    clock = HandClock()
    return Stage(RedisBackend(url, clock, limits=Limits(confirm_ms=confirm_ms)), clock)


def missed(url: str) -> int:
    with redis.Redis.from_url(url) as client:
        return int(str(client.hget("plaita:counters", "replica_missed") or b"0", "ascii"))


async def test_an_accepted_start_says_what_keeps_it(pair: tuple[RedisServer, RedisServer]) -> None:
    master, replica = pair
    stage, alone = stage_on(master.url, CONFIRM_MS), stage_on(master.url, 0)
    levels = [await at.backend.submit(start(name)) for at, name in ((stage, "a"), (alone, "b"))]
    replica.kill()
    levels.append(await stage.backend.submit(start("c")))
    await stage.backend.close()
    await alone.backend.close()
    said = [level.durability for level in levels if isinstance(level, Submitted)]
    assert (said, missed(master.url)) == (["replica", "local", "local"], 1)


async def test_a_replica_has_what_was_told_before_it_is_told(pair: tuple[RedisServer, RedisServer]) -> None:
    master, replica = pair
    stage = stage_on(master.url, CONFIRM_MS)
    client: Any = redis.Redis.from_url(replica.url, decode_responses=True)
    for number in range(20):
        await stage.backend.submit(start(f"r{number}"))
        assert client.exists(f"plaita:run:r{number}")
        await stage.backend.publish(f"e{number}", "pay", None, b"{}")
        assert client.exists(f"plaita:evid:e{number}")
    client.close()
    await stage.backend.close()


async def test_only_what_comes_from_outside_and_the_end_wait_for_a_replica(redis_url: str) -> None:
    stage = stage_on(redis_url, 1)
    claim = await stage.hold()
    before = missed(redis_url)
    await stage.settle(claim, Keep())
    after_a_step = missed(redis_url)
    await stage.settle(claim, End("completed", b"1"), seq=2)
    after_the_end = missed(redis_url)
    await stage.backend.wake(RunId("r"), WAIT, b"1")
    await stage.backend.close()
    assert (before, after_a_step, after_the_end, missed(redis_url)) == (1, 1, 2, 3)
