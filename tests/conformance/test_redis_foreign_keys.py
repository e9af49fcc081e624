"""Documented keys on Redis that somebody else made into something that the store did not write."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
import redis

from plaita.backends.limits import Fleet, Limits
from plaita.backends.redis import RedisBackend
from plaita.backends.redis.keys import NAMES, key
from plaita.backends.redis.mistyped import OWN
from plaita.base.clock import SystemClock
from plaita.base.errors import Unavailable
from plaita.control.adopting import adopt
from plaita.ports.processes import Facts, Process
from plaita.ports.runs import End
from plaita.ports.values import RunId
from plaita.runtime.checking import check
from plaita.server.worker.presence import Presence
from plaita.settings import Settings
from plaita.telemetry import LogTelemetry
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.inbox import publish_flows, word
from plaita.testing.conformance.stage import Stage

START = {"type": "start", "flow_id": "flow", "params": {}, "execution_id": "r"}
TOLERATED = (
    "plaita:tenant_quota",
    "plaita:tenant_status",
    "plaita:tenant_status:epoch",
    "plaita:exec_tombstone:r",
    "plaita:execution:index",
    "plaita:execution:r",
    "plaita:execution:lease:r",
)
WORKER = Process("h1", 1, ("default",), None, (), 0, Facts("w-1"))


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@pytest_asyncio.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    store = RedisBackend(redis_url, limits=Limits(fleet=Fleet(epoch="7")))
    stage = Stage(store, HandClock())
    await publish_flows(stage)
    yield stage
    await store.close()


def spoil(server: redis.Redis, key: str) -> None:
    """Put a list in the place of whatever is there: no documented key is one."""
    server.delete(key)
    server.rpush(key, "junk")


@pytest.mark.parametrize("key", TOLERATED)
async def test_a_key_of_another_type_ends_no_step_in_its_middle(stage: Stage, server: redis.Redis, key: str) -> None:
    spoil(server, key)
    server.xadd("plaita:flow:queue", {"payload": json.dumps(START)})
    assert [word(one.outcome) for one in await stage.backend.accept(9)] == ["Started"]
    spoil(server, key)
    [claim] = await stage.take()
    await stage.settle(claim, End("completed", b"1"))
    view = await stage.backend.run(RunId("r"))
    assert (view and view.status, await stage.backend.audit()) == ("completed", [])


async def test_a_deleted_execution_leaves_an_index_of_another_type_as_it_is(stage: Stage, server: redis.Redis) -> None:
    await stage.settle(await stage.hold(), End("completed", b"1"))
    spoil(server, "plaita:execution:index")
    await stage.backend.delete(RunId("r"))
    assert (server.type("plaita:execution:index"), await stage.backend.audit()) == ("list", [])


async def test_a_stream_that_is_none_is_an_unusable_store_until_it_is_renamed(
    stage: Stage, server: redis.Redis
) -> None:
    spoil(server, "plaita:flow:queue")
    with pytest.raises(Unavailable, match="of another type") as refused:
        await stage.backend.accept(9)
    [found] = [f for f in await check(stage.backend, Settings()) if f.status == "failed"]
    server.rename("plaita:flow:queue", "plaita:flow:queue:junk")
    accepted = await stage.backend.accept(9)
    assert "plaita doctor" in refused.value.hint
    assert (found.name, found.message) == ("keys", "plaita:flow:queue is of type list; the store keeps a stream there")
    assert accepted == []


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in OWN.items() for name in names])
async def test_a_key_of_ours_that_is_something_else_is_named(
    stage: Stage, server: redis.Redis, kind: str, name: str
) -> None:
    made = key(name, *("a:b", "c")[: NAMES[name].count("{") - NAMES[name].count("{n}")])
    server.delete(made)
    server.xadd(made, {"a": "b"})
    [found] = [f for f in await check(stage.backend, Settings()) if f.status == "failed"]
    assert (found.name, found.message) == ("keys", f"{made} is of type stream; the store keeps a {kind} there")


async def test_names_in_the_table_of_quotas_need_not_be_text(stage: Stage, server: redis.Redis) -> None:
    name: Any = b"\xff\xfe"
    server.hset("plaita:tenant_quota", name, "5")
    assert await stage.backend.audit() == []


async def test_a_row_of_another_type_cannot_be_taken_over_and_hides_no_other(stage: Stage, server: redis.Redis) -> None:
    spoil(server, "plaita:execution:bad")
    server.set("plaita:execution:worse", "[")
    server.zadd("plaita:execution:index", {"bad": 1, "worse": 2})
    spoil(server, "plaita:flow_list")
    store: Any = stage.backend
    verdicts = {one.execution_id: one.verdict async for one in adopt(store, store.published)}
    assert verdicts == {"bad": "unreadable", "worse": "unreadable"}


async def test_a_store_that_was_emptied_tells_a_process_once(stage: Stage, server: redis.Redis) -> None:
    before = [await stage.backend.announce(WORKER), await stage.backend.announce(WORKER)]
    server.flushall()
    after = [await stage.backend.announce(WORKER), await stage.backend.announce(WORKER)]
    assert (before, after) == ([True, True], [False, True])


async def test_a_worker_says_that_its_store_was_emptied_and_goes_on(
    stage: Stage, server: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    presence = Presence(stage.backend, SystemClock(), LogTelemetry(), WORKER, lambda: 0)
    await presence.enter()
    server.flushall()
    await presence.say("running")
    assert "store_forgot" in caplog.text
    assert [process.holder for process in await stage.backend.living()] == ["h1"]


async def test_a_process_that_left_and_comes_again_was_not_forgotten(stage: Stage) -> None:
    await stage.backend.announce(WORKER)
    await stage.backend.withdraw("h1")
    assert await stage.backend.announce(WORKER)
