"""The documented lease over a Redis server, beside the leases that workers show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from plaita.backends.redis import RedisBackend
from plaita.server.execution_lease import RedisExecutionLease, holder_instance_id
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.stage import Stage

LEASE, FENCE, FENCEGEN = (f"plaita:execution:{kind}:r" for kind in ("lease", "fence", "fencegen"))


@pytest.fixture(params=[True, False], ids=["text", "bytes"])
def client(redis_url: str, request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=request.param) as found:
        yield found


def test_one_holder_at_a_time(client: redis.Redis) -> None:
    lease = RedisExecutionLease(client)
    assert lease.try_acquire("r", "a", 60)
    assert not lease.try_acquire("r", "b", 60)
    assert (lease.get_holder("r"), lease.renew("r", "b", 60), lease.release("r", "b")) == ("a", False, False)
    assert lease.renew("r", "a", 120)
    assert 60 < int(str(client.ttl(LEASE))) <= 120
    assert lease.release("r", "a")
    assert (lease.get_holder("r"), lease.renew("r", "a", 60), lease.release("r", "a")) == (None, False, False)


def test_with_a_fence_each_grant_has_a_higher_number(client: redis.Redis) -> None:
    lease = RedisExecutionLease(client, fence_key_prefix="plaita:execution:fence:")
    client.set(FENCE, 7)
    seen = []
    for holder in ("a", "b"):
        assert lease.try_acquire("r", holder, 60)
        seen.append(lease.get_holder("r"))
        assert lease.renew("r", holder, 60)
        assert lease.release("r", holder)
    assert seen == ["a:8", "b:9"]
    assert [number(client, key) for key in (FENCE, FENCEGEN)] == [9, 9]


def number(client: redis.Redis, key: str) -> int:
    found: Any = client.get(key)
    return int(found)


def test_a_holder_that_lost_its_lease_neither_renews_nor_releases_that_of_another(client: redis.Redis) -> None:
    first = RedisExecutionLease(client, fence_key_prefix="plaita:execution:fence:")
    second = RedisExecutionLease(client, fence_key_prefix="plaita:execution:fence:")
    assert first.try_acquire("r", "a", 60)
    client.delete(LEASE)
    assert second.try_acquire("r", "a", 60)
    assert not first.renew("r", "a", 60)
    assert not first.release("r", "a")
    assert second.get_holder("r") == "a:2"


@pytest.mark.parametrize(
    ("value", "instance"),
    [
        ("start:w3:e05851f26f524881:1", "w3"),
        ("resume:w3:e05851f26f524881", "w3"),
        ("worker:w3:0123456789012345", "w3"),
        ("worker:e05851f26f524881:17", None),
        ("dispatch:w3:e05851f26f524881:1", None),
        ("start:e05851f26f524881", None),
        ("", None),
        (None, None),
    ],
)
def test_the_value_of_a_lease_names_its_instance(value: str | None, instance: str | None) -> None:
    assert holder_instance_id(value) == instance


async def test_the_lease_that_a_worker_shows_names_its_process(redis_url: str, client: redis.Redis) -> None:
    store = RedisBackend(redis_url, HandClock())
    await Stage(store, HandClock()).hold()
    await store.close()
    assert holder_instance_id(RedisExecutionLease(client).get_holder("r")) == "holder1"
