"""What consoles of the documented layout ask for by keys, and what they read before they offer a retry."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
import redis

from plaita.backends.limits import Limits
from plaita.backends.redis import RedisBackend
from plaita.backends.redis.flags import FlagWatch
from plaita.backends.redis.talk import Talk
from plaita.ports.runs import End, Keep, NotRetryable, Park, Renewed, Reopened, Settled
from plaita.ports.values import RunId
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.inbox import word
from plaita.testing.conformance.stage import Stage, hand, start

FLAG = "plaita:execution:cancel:r"
NOFAIL, WAKEUPS = "plaita:execution:nofail:r", "plaita:execution:g1wakeups:r"
WEEK = 7 * 86_400


@pytest.fixture
def keys(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest_asyncio.fixture
async def stage(clock: HandClock, redis_url: str) -> AsyncIterator[Stage]:
    store = RedisBackend(redis_url, clock, limits=Limits(wakeups_max=2))
    yield Stage(store, clock)
    await store.close()


def talk_of(stage: Stage) -> Talk:
    assert isinstance(stage.backend, RedisBackend)
    return stage.backend._talk


async def look(stage: Stage) -> bool:
    return await FlagWatch(talk_of(stage)).look()


async def test_a_flag_ends_a_run_that_waits(stage: Stage, keys: redis.Redis) -> None:
    await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
    keys.set(FLAG, "now")
    await look(stage)
    assert (await stage.status(), keys.exists(FLAG)) == ("cancelled", 0)
    assert b'"actor":"flag"' in (await stage.events())[-1]


async def test_a_flag_reaches_the_holder(stage: Stage, keys: redis.Redis) -> None:
    claim = await stage.keep(await stage.hold())
    keys.set(FLAG, "now")
    await look(stage)
    [answer] = await stage.backend.renew([(RunId("r"), claim.token)])
    assert isinstance(answer, Renewed)
    assert (answer.cancel, keys.exists(FLAG)) == (True, 0)
    settled = await stage.settle(claim, Keep())
    assert isinstance(settled, Settled)
    assert (settled.cancel, await stage.status()) == (True, "cancelled")


async def test_a_flagged_run_is_not_even_begun(stage: Stage, keys: redis.Redis) -> None:
    await stage.backend.submit(start())
    keys.set(FLAG, "now")
    assert await stage.take() == []
    assert (await stage.status(), keys.exists(FLAG)) == ("cancelled", 0)


async def test_a_flag_reaches_a_run_that_waits_for_its_time(stage: Stage, keys: redis.Redis) -> None:
    await stage.backend.submit(start(not_before_ms=stage.clock.now_ms() + 60_000, tenant="a/b"))
    keys.set("plaita:a/b:execution:cancel:r", "now")
    await look(stage)
    assert await stage.status() == "cancelled"


async def test_a_message_to_go_on_cancels_a_flagged_run(stage: Stage, keys: redis.Redis) -> None:
    await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
    keys.set(FLAG, "now")
    keys.xadd("plaita:flow:queue", {
        "payload": json.dumps({"type": "resume", "resume_type": "continue", "execution_id": "r"}),
        "schema_version": "1",
    })  # fmt: skip
    [accepted] = await stage.backend.accept(1)
    assert (word(accepted.outcome), await stage.status()) == ("Cancelled", "cancelled")


async def test_the_store_is_looked_through_once_a_second_whoever_looks(stage: Stage) -> None:
    first, at_once = await look(stage), await look(stage)
    stage.clock.advance(1_000)
    assert (first, at_once, await look(stage)) == (True, False, True)


async def test_every_run_has_its_turn(stage: Stage, keys: redis.Redis) -> None:
    for number in range(700):
        await stage.backend.submit(start(f"r{number}", not_before_ms=stage.clock.now_ms() + 60_000))
    keys.set("plaita:execution:cancel:r699", "now")
    for _ in range(3):
        await look(stage)
        stage.clock.advance(1_000)
    assert await stage.status("r699") == "cancelled"


async def test_a_retry_is_counted_for_consoles(stage: Stage, keys: redis.Redis) -> None:
    for number in (1, 2):
        [claim] = [await stage.hold()] if number == 1 else await stage.take()
        await stage.settle(claim, End("error", error=b"{}"))
        assert await stage.backend.reopen(RunId("r")) == Reopened(RunId("r"))
        assert keys.get(NOFAIL) == str(number)
    assert 0 < WEEK - int(str(keys.ttl(NOFAIL))) + 1 <= 60
    assert not keys.exists(WAKEUPS)


async def test_a_retry_after_lost_workers_is_counted_by_itself(stage: Stage, keys: redis.Redis) -> None:
    await stage.backend.submit(start())
    for retries in (1, 2, 3):
        while await stage.status() != "error":
            await stage.take()
            await stage.lease_over()
        answer = await stage.backend.reopen(RunId("r"))
        assert answer == (Reopened(RunId("r")) if retries <= 2 else NotRetryable("wakeups_exhausted"))
        assert keys.get(WAKEUPS) == str(min(retries, 2))


async def test_counters_and_flag_go_with_the_run(stage: Stage, keys: redis.Redis) -> None:
    await stage.settle(await stage.hold(), End("error", error=b"{}"))
    await stage.backend.reopen(RunId("r"))
    [claim] = await stage.take()
    await stage.settle(claim, End("completed", b"1"))
    keys.set(FLAG, "late")
    keys.set("plaita:execution:noderetry:r", "3")
    await stage.backend.delete(RunId("r"))
    assert not keys.exists(FLAG, NOFAIL, WAKEUPS, "plaita:execution:noderetry:r")
