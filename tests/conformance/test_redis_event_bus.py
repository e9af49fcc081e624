"""Events, subscriptions and the bus on Redis as programs use them: keys, handlers, the filter and the reconciler."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from plaita.base.errors import EventNotFoundError, EventStorageError, EventTimeoutError, NotSupported
from plaita.event import Event, EventSubscription, InMemoryEventBus, MemoryEventStorage
from plaita.event.redis import RedisEventBus, RedisEventStorage, RedisEventSubscriptionStorage
from plaita.server.event_filter import EventFilter
from plaita.server.event_reconcile import EventReconciler
from plaita.server.flow_worker import FlowWorker
from plaita.storage import MemoryExecutionStorage, RedisExecutionStorage, RedisFlowStorage
from tests.support.fleet import wait_until
from tests.unit.test_flow_worker import WAITS

WEEK = 604_800


@pytest.fixture
async def bus(redis_url: str) -> AsyncIterator[RedisEventBus]:
    found = RedisEventBus(redis_url)
    yield found
    await found.close()


@pytest.fixture
async def events(redis_url: str) -> AsyncIterator[RedisEventStorage]:
    found = RedisEventStorage(redis_url)
    yield found
    await found.close()


@pytest.fixture
async def subscriptions(redis_url: str) -> AsyncIterator[RedisEventSubscriptionStorage]:
    found = RedisEventSubscriptionStorage(redis_url)
    yield found
    await found.close()


async def test_an_event_has_the_documented_record_and_index(events: RedisEventStorage, client: Any) -> None:
    event = Event(event_id="1", event_type="order.paid", data={"a": "é"}, timestamp=5.25, correlation_id="x")
    assert await events.store_event(event) == "1"
    assert json.loads(client.get("plaita:event:events:1")) == {
        "event_id": "1", "event_type": "order.paid", "data": {"a": "é"}, "timestamp": 5.25, "source": "",
        "correlation_id": "x", "tenant_id": None,
    }  # fmt: skip
    assert client.zrange("plaita:event:types:order.paid", 0, -1, withscores=True) == [("1", 5.25)]
    assert client.ttl("plaita:event:events:1") == client.ttl("plaita:event:types:order.paid") == WEEK


async def test_a_shorter_event_does_not_shorten_its_index(events: RedisEventStorage, client: Any) -> None:
    await events.store_event(Event(event_type="go", data={}))
    events.ttl = 5
    await events.store_event(Event(event_type="go", data={}))
    assert client.ttl("plaita:event:types:go") > WEEK - 60


async def test_events_are_listed_in_order_within_a_time(events: RedisEventStorage) -> None:
    given = [Event(event_id=str(i), event_type=f"t{i % 2}", data={}, timestamp=10.0 * i) for i in range(6)]
    await events.batch_store_events(given)
    assert [e.event_id for e in await events.list_events()] == ["0", "1", "2", "3", "4", "5"]
    assert [e.event_id for e in await events.list_events("t1", 10, 30)] == ["1", "3"]
    assert [e.event_id for e in await events.list_events(start_time=20, limit=2)] == ["2", "3"]
    assert await events.delete_event("3")
    assert not await events.delete_event("3")
    assert await events.get_event("3") is None
    assert [e.event_id for e in await events.list_events("t1")] == ["1", "5"]


async def test_a_subscription_has_the_documented_record_and_indexes(
    subscriptions: RedisEventSubscriptionStorage, client: Any
) -> None:
    given = EventSubscription(subscription_id="s", event_type="go", correlation_id="x", flow_id="f", node_id="n")
    await subscriptions.store_subscription(given)
    for index in ("type:go", "correlation:x", "flow:f", "node:n"):
        assert client.smembers(f"plaita:subscription:{index}") == {"s"}
    assert json.loads(client.get("plaita:subscription:data:s"))["node_id"] == "n"
    assert await subscriptions.mark_event_processed("s", "e")
    assert client.get("plaita:subscription:processed:s:e") == "1"
    found = await subscriptions.get_subscription("s")
    assert found is not None
    assert found.is_event_processed("e")
    assert await subscriptions.delete_subscription("s")
    assert not await subscriptions.delete_subscription("s")
    assert not await subscriptions.mark_event_processed("s", "e")
    assert set(client.keys("plaita:subscription:*")) == {"plaita:subscription:processed:s:e"}


async def test_subscriptions_are_found_by_all_that_is_asked(subscriptions: RedisEventSubscriptionStorage) -> None:
    for name, kind, flow in (("a", "go", "f"), ("b", "go", "g"), ("c", "stop", "f")):
        await subscriptions.store_subscription(EventSubscription(subscription_id=name, event_type=kind, flow_id=flow))
    assert [s.subscription_id for s in await subscriptions.list_subscriptions()] == ["a", "b", "c"]
    assert [s.subscription_id for s in await subscriptions.list_subscriptions("go", flow_id="f")] == ["a"]
    matching = await subscriptions.find_matching_subscriptions(Event(event_type="go", data={}), {"$FLOW_ID": "g"})
    assert [s.subscription_id for s in matching] == ["b"]


async def test_a_handler_is_told_of_what_any_process_publishes_once(bus: RedisEventBus, redis_url: str) -> None:
    seen: list[int] = []
    await bus.register_handler("order.*", lambda event: seen.append(event.data["n"]))
    other = RedisEventBus(redis_url)
    event = Event(event_type="order.paid", data={"n": 1})
    for one in (event, event, Event(event_type="else", data={"n": 2}), Event(event_type="order.", data={"n": 3})):
        await other.publish(one)
    await _until(lambda: len(seen) == 2)
    assert seen == [1, 3]
    await bus.publish(event, prevent_duplicate_consumption=False)
    await _until(lambda: len(seen) == 3)
    await other.close()


async def test_a_published_event_is_kept_for_the_tenant_and_can_be_read(bus: RedisEventBus, client: Any) -> None:
    event_id = await bus.publish("paid", n=1)
    assert (await bus.get_event(event_id)).tenant_id == "default"
    assert json.loads(client.get(f"plaita:event:events:{event_id}"))["data"] == {"n": 1}
    with pytest.raises(EventNotFoundError):
        await bus.get_event("nobody")


def test_an_event_is_published_where_no_loop_runs(redis_url: str, client: Any) -> None:
    event_id = RedisEventBus(redis_url).publish_sync("paid", n=1)
    assert client.exists(f"plaita:event:events:{event_id}")


async def test_a_process_waits_for_the_next_event(bus: RedisEventBus, redis_url: str) -> None:
    other = RedisEventBus(redis_url)
    await bus.initialize()
    waiting = asyncio.create_task(bus.wait_for_event("go", 10, lambda event: event.data["n"] == 2))
    await asyncio.sleep(0)
    for n in (1, 2):
        await other.publish("go", n=n)
    assert (await waiting).data == {"n": 2}
    with pytest.raises(EventTimeoutError):
        await bus.wait_for_event("never", 0.01)
    await other.close()


async def test_a_server_that_is_away_is_an_error_of_events() -> None:
    with pytest.raises(EventStorageError):
        await RedisEventStorage("unix:///nobody/is/here").store_event(Event(event_type="go", data={}))


async def test_a_filter_gives_events_of_its_bus_to_executions_of_a_store(redis_url: str, client: Any) -> None:
    executions, flows = RedisExecutionStorage(client=client), RedisFlowStorage(client=client)
    flows.save_flow(WAITS)
    worker, bus = FlowWorker(executions, flows), InMemoryEventBus()
    await asyncio.to_thread(worker.start_flow, "waits", {}, execution_id="w")
    filtering = EventFilter(executions, bus.subscription_storage, client, bus)
    running = asyncio.create_task(filtering.start())
    await asyncio.sleep(0)
    await bus.publish(Event(event_type="go", data={"n": 1}, correlation_id="w"))
    await bus.drain()
    assert (await asyncio.to_thread(worker.resume_flow, "waits", "w", "retry"))["result"] == {"n": 1}
    await filtering.stop()
    await running
    executions.close()
    flows.close()


def test_a_filter_refuses_executions_that_no_store_moves() -> None:
    bus = InMemoryEventBus()
    with pytest.raises(NotSupported, match="MemoryExecutionStorage"):
        EventFilter(MemoryExecutionStorage(), bus.subscription_storage, None, bus)


class Heard:
    """A filter that notes what it is handed, and refuses one event."""

    def __init__(self, refused: str = "") -> None:
        self.ids: list[str] = []
        self.refused = refused

    async def handle_event(self, event: Event) -> None:
        if event.event_id == self.refused:
            raise ConnectionError
        self.ids.append(event.event_id)


async def test_a_reconciler_moves_to_the_end_of_what_was_handled_and_turns_errors_into_nothing(client: Any) -> None:
    storage, heard, now = MemoryEventStorage(), Heard("e3"), Event(event_type="go", data={}).timestamp
    for i in range(5):
        await storage.store_event(Event(event_id=f"e{i}", event_type="go", data={}, timestamp=now))
    reconciler = EventReconciler(storage, heard, client, batch_size=2)
    assert await reconciler.scan_once() == 0
    assert heard.ids == ["e0", "e1", "e2"]
    heard.refused = ""
    assert await reconciler.scan_once() == 3
    assert heard.ids == ["e0", "e1", "e2", "e2", "e3", "e4"]
    assert await reconciler.scan_once() == 0
    assert float(client.get(EventReconciler.CURSOR_KEY)) > 0


async def test_a_reconciler_looks_no_further_back_than_it_is_told(client: Any) -> None:
    storage, heard = MemoryEventStorage(), Heard()
    await storage.store_event(Event(event_id="old", event_type="go", data={}, timestamp=5.0))
    await storage.store_event(Event(event_id="new", event_type="go", data={}))
    assert await EventReconciler(storage, heard, client, backfill_seconds=60).scan_once() == 1
    assert heard.ids == ["new"]


async def _until(check: Any) -> None:
    await asyncio.to_thread(wait_until, check, "the handler is told")
