"""What keeps a message from starting something on Redis: another fleet, another epoch, tombstones, quotas of others."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
import redis

from plaita.backends.limits import Fleet, Limits
from plaita.backends.redis import RedisBackend
from plaita.ports.runs import End, Park, Tombstoned
from plaita.ports.values import RunId
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.inbox import publish_flows, word
from plaita.testing.conformance.stage import Stage, hand, start

QUEUE, GROUP, DLQ = "plaita:flow:queue", "plaita-workers", "plaita:flow:queue:dlq"
OURS, THEIRS = "cf1-00000000aaaa", "cf1-00000000bbbb"
FLEET = Fleet(OURS, "cfg1-00000000aaaa", "bg1-00000000aaaa")
START = {"type": "start", "flow_id": "flow", "params": {"x": 1}, "execution_id": "r", "tenant_id": "acme"}


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


async def opened(url: str, limits: Limits) -> AsyncIterator[Stage]:
    store = RedisBackend(url, limits=limits)
    stage = Stage(store, HandClock())
    await publish_flows(stage)
    yield stage
    await store.close()


@pytest_asyncio.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    async for one in opened(redis_url, Limits(fleet=FLEET, claim_min_idle_ms=0)):
        yield one


@pytest_asyncio.fixture
async def seventh(redis_url: str) -> AsyncIterator[Stage]:
    """A deployment of the epoch 7."""
    async for one in opened(redis_url, Limits(fleet=Fleet(epoch="7"))):
        yield one


def produce(server: redis.Redis, body: Any, entry: str = "*", **fields: str) -> str:
    carried: Any = {"payload": json.dumps(body), **fields}
    return str(server.xadd(QUEUE, carried, id=entry))


def entries(server: redis.Redis, stream: str) -> list[dict[str, str]]:
    found: Any = server.xrange(stream)
    return [fields for _, fields in found]


def counted(server: redis.Redis, name: str) -> int:
    found: Any = server.hget("plaita:counters", name)
    return int(found or 0)


def pending(server: redis.Redis) -> list[tuple[str, int]]:
    found: Any = server.xpending_range(QUEUE, GROUP, "-", "+", 10)
    return [(one["message_id"], one["times_delivered"]) for one in found]


async def outcomes(stage: Stage) -> list[str]:
    return [word(accepted.outcome) for accepted in await stage.backend.accept(9)]


async def test_a_message_of_our_own_family_starts(stage: Stage, server: redis.Redis) -> None:
    produce(server, START, schema_version="1", config_family=OURS)
    assert await outcomes(stage) == ["Started"]
    assert (counted(server, "config_legacy"), counted(server, "schema_legacy")) == (0, 0)


@pytest.mark.parametrize("family", ["", "legacy", "cf1-xyz", "cf1-00000000aaaaa"])
async def test_a_message_without_a_family_starts_and_is_counted(stage: Stage, server: redis.Redis, family: str) -> None:
    produce(server, START, schema_version="1", **({"config_family": family} if family else {}))
    assert await outcomes(stage) == ["Started"]
    assert counted(server, "config_legacy") == 1


@pytest.mark.parametrize("version", ["", "one"])
async def test_a_message_without_a_readable_version_starts_and_is_counted(
    stage: Stage, server: redis.Redis, version: str
) -> None:
    produce(server, START, config_family=OURS, schema_version=version)
    assert await outcomes(stage) == ["Started"]
    assert counted(server, "schema_legacy") == 1


async def test_a_time_that_cannot_be_read_is_counted(stage: Stage, server: redis.Redis) -> None:
    produce(server, {**START, "timestamp": "yesterday"})
    assert await outcomes(stage) == ["Started"]
    assert counted(server, "time_unreadable") == 1


async def test_a_message_of_another_family_is_left_as_it_is(stage: Stage, server: redis.Redis) -> None:
    entry = produce(server, START, config_family=THEIRS)
    assert [await outcomes(stage), await outcomes(stage), await outcomes(stage)] == [[], [], []]
    assert pending(server) == [(entry, 1)]
    assert (await stage.status(), server.xlen(DLQ), counted(server, "config_family_mismatch")) == ("", 0, 1)


async def test_messages_for_others_keep_none_of_ours_back(stage: Stage, server: redis.Redis) -> None:
    await outcomes(stage)
    for _ in range(70):
        produce(server, START, config_family=THEIRS)
    produce(server, START, config_family=OURS)
    server.xreadgroup(GROUP, "somebody who died", {QUEUE: ">"})
    seen = [found for _ in range(3) for found in await outcomes(stage)]
    assert seen == ["Started"]


async def test_nobody_came_for_a_message_of_another_family(stage: Stage, server: redis.Redis) -> None:
    await outcomes(stage)
    entry = produce(server, START, entry="1600000000000-0", config_family=THEIRS)
    assert await outcomes(stage) == ["family_mismatch"]
    [fields] = entries(server, DLQ)
    letter = json.loads(fields["payload"])
    assert letter["reason"].startswith("config_family_mismatch_age>2592000s (")
    assert (letter["source_id"], letter["payload"], pending(server)) == (entry, START, [])


async def test_a_message_of_another_family_reaches_a_live_run(stage: Stage, server: redis.Redis) -> None:
    await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
    produce(server, {"type": "cancel", "execution_id": "r"}, config_family=THEIRS)
    assert await outcomes(stage) == ["Cancelled"]


async def test_what_is_sent_from_here_carries_our_ids(stage: Stage, server: redis.Redis) -> None:
    await stage.backend.offer("m", b"{}")
    [fields] = entries(server, QUEUE)
    assert fields["schema_version"] == "1"
    assert (fields["config_family"], fields["config_generation"], fields["budget_generation"]) == (
        FLEET.family, FLEET.generation, FLEET.budget,
    )  # fmt: skip


async def test_a_message_that_nobody_finishes_is_no_dead_letter_of_a_live_run(
    stage: Stage, server: redis.Redis
) -> None:
    await outcomes(stage)
    await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
    entry = produce(server, {"type": "resume", "execution_id": "r", "wait_id": "w"}, config_family=OURS)
    server.xreadgroup(GROUP, "m", {QUEUE: ">"})
    server.xclaim(QUEUE, GROUP, "m", 0, [entry], retrycount=5)
    assert await outcomes(stage) == []
    assert (server.xlen(DLQ), counted(server, "dlq_guard_skipped")) == (0, 1)
    await stage.backend.cancel(RunId("r"))
    assert await outcomes(stage) == ["max_deliveries"]


EPOCHS = {
    # what the store says of its tenants: what a deployment of the epoch 7 does for (acme, default)
    "": ("stale_epoch", "Started"),
    "6": ("stale_epoch", "Started"),
    "7": ("Started", "Started"),
    "07": ("Started", "Started"),
    "10": ("stale_epoch", "stale_epoch"),
    "blue": ("stale_epoch", "Started"),
}


@pytest.mark.parametrize("there", EPOCHS)
async def test_an_epoch_that_differs_keeps_tenants_from_starting(
    seventh: Stage, server: redis.Redis, there: str
) -> None:
    if there:
        server.set("plaita:tenant_status:epoch", there)
    for tenant in ("acme", "default"):
        produce(server, {**START, "tenant_id": tenant, "execution_id": tenant})
    found = await outcomes(seventh)
    assert tuple(found) == EPOCHS[there]
    assert counted(server, "tenant_status_stale_epoch") == found.count("stale_epoch")


async def test_an_epoch_does_not_concern_live_runs_and_messages_without_a_tenant(
    seventh: Stage, server: redis.Redis
) -> None:
    await seventh.settle(await seventh.hold("live", tenant="acme"), Park(None), arms=(hand(),))
    produce(server, {"type": "resume", "execution_id": "live", "wait_id": "w", "tenant_id": "acme"})
    produce(server, {k: v for k, v in START.items() if k != "tenant_id"})
    assert await outcomes(seventh) == ["Woken", "Started"]


async def test_a_status_that_cannot_be_read_lets_pass_and_is_counted(stage: Stage, server: redis.Redis) -> None:
    server.hset("plaita:tenant_status", "acme", "nonsense")
    produce(server, START, config_family=OURS)
    assert await outcomes(stage) == ["Started"]
    assert counted(server, "tenant_status_unreadable") == 1


def stone(server: redis.Redis, text: str) -> None:
    server.set("plaita:exec_tombstone:r", text)


async def test_what_others_deleted_stays_deleted(stage: Stage, server: redis.Redis) -> None:
    stone(server, '{"tenant": "acme", "deleted_at": "2026-01-01T00:00:00", "reason": "execution_deleted"}')
    produce(server, START, config_family=OURS)
    assert await outcomes(stage) == ["tombstoned"]
    assert await stage.backend.submit(start(tenant="acme")) == Tombstoned(RunId("r"))


@pytest.mark.parametrize(("text", "unreadable"), [('{"tenant": "other"}', 0), ("nonsense", 1), ("[]", 0)])
async def test_a_tombstone_of_another_tenant_refuses_nothing(
    stage: Stage, server: redis.Redis, text: str, unreadable: int
) -> None:
    stone(server, text)
    produce(server, START, config_family=OURS)
    assert await outcomes(stage) == ["Started"]
    assert counted(server, "tombstone_unreadable") == unreadable


async def running(stage: Stage, *names: str) -> list[str]:
    for name in names:
        await stage.backend.submit(start(name, tenant="acme"))
    return [claim.header.run_id for claim in await stage.take(9)]


async def test_the_table_of_quotas_bounds_a_tenant(stage: Stage, server: redis.Redis) -> None:
    server.hset("plaita:tenant_quota", "acme", "2")
    assert await running(stage, "a", "b", "c") == ["a", "b"]
    assert await stage.backend.audit() == []


@pytest.mark.parametrize("said", ["0", "-1", "many", "1.5"])
async def test_a_quota_that_is_no_positive_number_is_none(redis_url: str, server: redis.Redis, said: str) -> None:
    server.hset("plaita:tenant_quota", "acme", said)
    async for capped in opened(redis_url, Limits(cap=1)):
        assert await running(capped, "a", "b", "c") == ["a", "b", "c"]
        assert await capped.backend.audit() == []
    assert (counted(server, "tenant_quota_unreadable") > 0) == (said in ("many", "1.5"))


async def test_a_quota_that_is_lifted_lets_in_those_who_wait(stage: Stage, server: redis.Redis) -> None:
    server.hset("plaita:tenant_quota", "acme", "1")
    claim = await stage.hold("a", tenant="acme")
    assert await running(stage, "b", "c", "d") == []
    server.hset("plaita:tenant_quota", "acme", "0")
    await stage.settle(claim, End("completed", b"1"))
    assert await running(stage) == ["b", "c", "d"]


async def test_who_goes_past_the_quota_is_counted(stage: Stage, server: redis.Redis) -> None:
    server.hset("plaita:tenant_quota", "acme", "1")
    await stage.hold("a", tenant="acme")
    produce(server, {**START, "quota_bypass": True}, config_family=OURS)
    assert await outcomes(stage) == ["Started"]
    assert (await running(stage), counted(server, "quota_bypass")) == (["r"], 1)
    assert server.zrange("plaita:tenant_running:acme", 0, -1) == ["a"]
