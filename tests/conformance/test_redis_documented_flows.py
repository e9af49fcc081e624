"""What consoles and workers of the documented layout find of a flow that is published here."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
import redis

from plaita import Flow
from plaita.backends.redis import RedisBackend
from plaita.core.closure import close_over
from plaita.core.published import publish
from plaita.testing.conformance import HandClock


@pytest.fixture
def keys(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@pytest_asyncio.fixture
async def store(redis_url: str) -> AsyncIterator[RedisBackend]:
    found = RedisBackend(redis_url, HandClock())
    yield found
    await found.close()


def definition(version: str | None = None, output: str = "ü", flow_id: str = "f") -> dict[str, Any]:
    nodes = [{"type": "start", "id": "s", "next": "e"}, {"type": "end", "id": "e", "output": output}]
    return {"flow_id": flow_id, "nodes": nodes} | ({"version": version} if version else {})


async def published(store: RedisBackend, document: dict[str, Any]) -> str:
    return (await publish(store, Flow.model_validate(document))).version


def shown(keys: redis.Redis, flow_id: str = "f") -> dict[str, Any]:
    """Every definition of a flow that the documented layout names, by version."""
    names: Any = keys.smembers(f"plaita:flow_versions:{flow_id}")
    return {name: json.loads(str(keys.get(f"plaita:flow:{flow_id}:{name}"))) for name in names}


def elsewhere(keys: redis.Redis, version: str, document: dict[str, Any]) -> None:
    """A console publishes it."""
    keys.set(f"plaita:flow:f:{version}", json.dumps(document))
    keys.sadd("plaita:flow_versions:f", version)
    keys.sadd("plaita:flow_list", "f")


async def test_a_published_flow_is_shown_as_it_was_written(store: RedisBackend, keys: redis.Redis) -> None:
    await published(store, definition("1"))
    await published(store, definition("2", "other"))
    assert keys.smembers("plaita:flow_list") == {"f"}
    assert shown(keys) == {"1": definition("1"), "2": definition("2", "other")}


async def test_a_version_that_is_published_again_is_shown_anew(store: RedisBackend, keys: redis.Redis) -> None:
    await published(store, definition("1"))
    await published(store, definition("1", "other"))
    assert shown(keys) == {"1": definition("1", "other")}


async def test_a_flow_without_a_version_is_the_latest_one_too(store: RedisBackend, keys: redis.Redis) -> None:
    first = await published(store, definition())
    second = await published(store, definition(output="other"))
    named = await published(store, definition("7"))
    assert shown(keys) == {
        first: definition(), second: definition(output="other"), named: definition("7"), "latest": definition("7"),
    }  # fmt: skip


async def test_what_is_shown_is_not_taken_for_a_flow_of_another_system(store: RedisBackend, keys: redis.Redis) -> None:
    await published(store, definition())
    last = await published(store, definition(output="other"))
    asked = await store.flow("f", "latest")
    assert await store.flow("f", "unknown") is None
    assert asked is not None and asked.version == last
    assert [found.version for found in await store.flows()] == [last]
    assert len(await store.versions("f")) == 2


async def test_a_latest_one_of_another_system_stays_as_it_is(store: RedisBackend, keys: redis.Redis) -> None:
    elsewhere(keys, "latest", definition(output="theirs"))
    mine = await published(store, definition("1"))
    found = await store.flow("f", "latest")
    assert shown(keys) == {"latest": definition(output="theirs"), mine: definition("1")}
    assert found is not None and found.closure == close_over(Flow.model_validate(definition(output="theirs")))[0]


async def test_a_flow_brought_from_another_system_is_not_written_again(store: RedisBackend, keys: redis.Redis) -> None:
    elsewhere(keys, "1", definition("1"))
    before = keys.get("plaita:flow:f:1")
    assert await store.flow("f") is not None
    assert (keys.get("plaita:flow:f:1"), set(shown(keys))) == (before, {"1"})


@pytest.mark.parametrize(("flow_id", "version"), [("queue", "dlq"), ("queue", "offered"), ("a:b", "1"), ("a", "b:1")])
async def test_a_name_that_means_another_key_is_not_shown(
    store: RedisBackend, keys: redis.Redis, flow_id: str, version: str
) -> None:
    await published(store, definition(version, flow_id=flow_id))
    assert keys.exists("plaita:flow_list", f"plaita:flow_versions:{flow_id}", f"plaita:flow:{flow_id}:{version}") == 0
    assert await store.flow(flow_id, version) is not None


async def test_a_key_of_another_kind_is_left_alone(store: RedisBackend, keys: redis.Redis) -> None:
    keys.xadd("plaita:flow:f:1", {"payload": "a queue of that name"})
    await published(store, definition("1"))
    assert keys.type("plaita:flow:f:1") == "stream"
