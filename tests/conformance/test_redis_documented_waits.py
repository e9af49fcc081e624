"""What programs of the documented layout find of a wait on Redis, and how they answer it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from plaita.backends.redis import RedisBackend
from plaita.backends.redis.keys import subscription_id
from plaita.base.json import encode
from plaita.event import Event
from plaita.event.redis import RedisEventSubscriptionStorage
from plaita.ports.inbox import Resumed
from plaita.ports.runs import Arm, Closing, End, Park, Woken
from plaita.ports.values import RunId, WaitId
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.stage import START_MS, Stage, listen

WAIT = "@wait#1"
ID = subscription_id("r", WAIT)
DATA, INDEX = f"plaita:subscription:data:{ID}", "plaita:subscription:correlation:r"
PAID = Arm(
    WaitId(WAIT), "event", "wait", "wait", "paid", "r", by_filter=True, deadline_ms=START_MS + 1_500,
    wanted=b'{"who":"\xc3\xbc"}',
)  # fmt: skip


@pytest_asyncio.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    clock = HandClock()
    store = RedisBackend(redis_url, clock)
    yield Stage(store, clock)
    await store.close()


@pytest.fixture
async def subscriptions(redis_url: str) -> AsyncIterator[RedisEventSubscriptionStorage]:
    found = RedisEventSubscriptionStorage(redis_url)
    yield found
    await found.close()


def shown(client: Any) -> list[str]:
    return sorted(client.keys("plaita:subscription:*"))


async def test_a_wait_is_a_subscription_with_every_documented_field(stage: Stage, client: Any) -> None:
    await stage.settle(await stage.hold(), Park(None), arms=(PAID,))
    assert json.loads(client.get(DATA)) == {
        "subscription_id": ID, "event_type": "paid", "filter_condition": {"who": "ü"}, "correlation_id": "r",
        "flow_id": "flow", "node_id": "wait", "created_at": START_MS / 1000, "timeout": 1.5, "tenant_id": None,
        "processed_events": [],
    }  # fmt: skip
    assert client.smembers(INDEX) == {ID}
    assert (client.ttl(DATA), client.ttl(INDEX)) == (-1, -1)


async def test_the_subscription_names_the_tenant_of_the_execution(stage: Stage, client: Any) -> None:
    await stage.settle(await stage.hold(tenant="acme"), Park(None), arms=(PAID,))
    assert json.loads(client.get(DATA))["tenant_id"] == "acme"


@pytest.mark.parametrize("way", ["answered", "closed", "ended", "cancelled"])
async def test_a_subscription_goes_in_the_step_that_ends_its_wait(stage: Stage, client: Any, way: str) -> None:
    claim = await stage.hold()
    if way in ("answered", "cancelled"):
        await stage.settle(claim, Park(None), arms=(PAID,))
        if way == "answered":
            assert await stage.backend.wake(RunId("r"), WaitId(WAIT), b"{}", "a") == Woken(RunId("r"))
        else:
            await stage.backend.cancel(RunId("r"))
    else:
        await stage.settle(claim, Park(START_MS), arms=(PAID,))
        [again] = await stage.take()
        before = shown(client)
        if way == "closed":
            await stage.settle(again, Park(START_MS), closes=(Closing(WaitId(WAIT), "timeout"),))
        else:
            await stage.settle(again, End("completed", b"1"))
        assert before == [INDEX, DATA]
    assert shown(client) == []


@pytest.mark.parametrize(
    "arm",
    [listen(key="order-7"), Arm(WaitId(WAIT), "hand", "node", "node"), Arm(WaitId(WAIT), "child", "node", "node")],
)
async def test_a_wait_that_the_layout_cannot_tell_is_not_shown(stage: Stage, client: Any, arm: Arm) -> None:
    await stage.settle(await stage.hold(), Park(None), arms=(arm,))
    assert shown(client) == []


async def test_two_waits_of_an_execution_are_two_subscriptions(stage: Stage, client: Any) -> None:
    second = replace(PAID, wait_id=WaitId("@wait#2"))
    await stage.settle(await stage.hold(), Park(None), arms=(PAID, second))
    await stage.backend.wake(RunId("r"), WaitId(WAIT), b"{}", "a")
    assert shown(client) == [INDEX, f"plaita:subscription:data:{subscription_id('r', '@wait#2')}"]
    assert client.object("encoding", INDEX) == "intset"


async def test_a_wait_that_comes_as_the_last_one_closes_is_shown(stage: Stage, client: Any) -> None:
    second = replace(PAID, wait_id=WaitId("@wait#2"))
    claim = await stage.keep(await stage.hold(), PAID)
    await stage.settle(claim, Park(None), closes=(Closing(WaitId(WAIT), "cut"),), arms=(second,))
    assert client.smembers(INDEX) == {subscription_id("r", "@wait#2")}


async def test_a_storage_of_subscriptions_finds_the_wait(
    stage: Stage, subscriptions: RedisEventSubscriptionStorage
) -> None:
    await stage.settle(await stage.hold(), Park(None), arms=(PAID,))
    event = Event(event_type="paid", data={"who": "ü"}, correlation_id="r")
    found = [
        *await subscriptions.list_subscriptions(event_type="paid"),
        *await subscriptions.list_subscriptions(correlation_id="r", node_id="wait"),
        *await subscriptions.find_matching_subscriptions(event),
    ]
    assert [s.subscription_id for s in found] == [ID, ID, ID]
    assert await subscriptions.find_matching_subscriptions(event.model_copy(update={"data": {"who": "x"}})) == []


@pytest.mark.parametrize("kind", ["event", "timeout"])
async def test_a_message_may_name_a_wait_by_its_subscription(stage: Stage, kind: str) -> None:
    await stage.settle(await stage.hold(), Park(None), arms=(PAID,))
    data = {"subscription_id": ID, "event_type": "paid", "event_data": {"who": "ü"}, "event_id": "e"}
    body = {"type": "resume", "resume_type": kind, "flow_id": "flow", "execution_id": "r", "data": data}
    await stage.backend.offer("m", encode(body))
    [accepted] = await stage.backend.accept(10)
    assert accepted.outcome == Resumed(Woken(RunId("r")))
