"""What keeps what was accepted: the server alone, or a replica too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from plaita.backends.limits import Limits
from plaita.backends.redis import RedisBackend
from plaita.base.errors import Unavailable
from plaita.base.json import encode
from plaita.ports.inbox import Accepted, CancelAccepted
from plaita.ports.runs import Cancelled, End, Keep, Settled, Submitted
from plaita.ports.values import RunId
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.stage import RUN, WAIT, Stage, start
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


async def test_many_that_wait_for_a_replica_that_is_away_wait_together(redis_url: str) -> None:
    stage, count = stage_on(redis_url, 50), 40
    with redis.Redis.from_url(redis_url) as client:
        client.config_resetstat()
        await asyncio.gather(*(stage.backend.submit(start(f"r{number}")) for number in range(count)))
        asked = client.info("commandstats")["cmdstat_wait"]["calls"]
    await stage.backend.close()
    assert missed(redis_url) == count
    assert asked < count / 4


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


async def accepted_after_a_fail_over(pair: tuple[RedisServer, RedisServer], *, replica_has_it: bool) -> list[Accepted]:
    """What the replica, a master now, still has to accept of a message that was accepted before."""
    master, replica = pair
    before, after = stage_on(master.url, CONFIRM_MS), stage_on(replica.url, 0)
    promoted: Any = redis.Redis.from_url(replica.url)
    await before.backend.offer("m", encode({"type": "cancel", "execution_id": RUN}))
    await before.backend.submit(start())
    if not replica_has_it:
        promoted.replicaof("NO", "ONE")
    [accepted] = await before.backend.accept(1)
    assert accepted == Accepted("m", CancelAccepted(Cancelled()))
    # What is told waits for the replica, and with it what came before on the master.
    await before.backend.submit(start("later"))
    await before.backend.close()
    master.kill()
    promoted.replicaof("NO", "ONE")
    again = await after.backend.accept(1)
    assert (await after.status(), await after.backend.backlog()) == ("cancelled", 0)
    await after.backend.close()
    promoted.close()
    return again


async def test_a_message_that_a_replica_has_is_accepted_again_where_its_effect_is_missing(
    pair: tuple[RedisServer, RedisServer],
) -> None:
    [again] = await accepted_after_a_fail_over(pair, replica_has_it=False)
    assert again == Accepted("m", CancelAccepted(Cancelled()))


async def test_an_accepted_message_is_gone_where_its_effect_is(pair: tuple[RedisServer, RedisServer]) -> None:
    assert await accepted_after_a_fail_over(pair, replica_has_it=True) == []


async def test_a_message_and_a_retry_wait_for_a_replica(redis_url: str) -> None:
    stage = stage_on(redis_url, 1)
    await stage.settle(await stage.hold(), End("error", error=b"{}"))
    before = missed(redis_url)
    await stage.backend.offer("m", b"{}")
    await stage.backend.reopen(RUN)
    await stage.backend.close()
    assert missed(redis_url) - before == 2


RIGHTS = "~* &* +@all"


def user(server: RedisServer, *rights: str) -> str:
    """A URL for a user with these rights."""
    with redis.Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "some", "on", ">word", *RIGHTS.split(), *rights)
    return server.url.replace("unix://", "unix://some:word@")


async def test_a_user_who_may_not_wait_is_refused_before_anything_is_accepted() -> None:
    with redis_at() as server:
        waiting, alone = stage_on(user(server, "-wait"), 1), stage_on(user(server, "-wait"), 0)
        with pytest.raises(Unavailable, match=r"refuses this user.*'wait'"):
            await waiting.backend.now_ms()
        with pytest.raises(Unavailable, match=r"refuses this user.*'wait'"):
            await waiting.backend.submit(start())
        await alone.backend.submit(start("b"))
        assert [run.run_id for run in (await alone.backend.runs())[0]] == ["b"]
        await waiting.backend.close()
        await alone.backend.close()


async def test_a_right_to_wait_that_is_taken_away_is_no_error_of_an_execution() -> None:
    with redis_at() as server:
        stage = stage_on(user(server, "+wait"), 1)
        claim = await stage.hold()
        before = missed(server.url)
        user(server, "-wait")
        assert isinstance(await stage.settle(claim, End("completed", b"1")), Settled)
        await stage.backend.close()
        assert missed(server.url) - before == 1
