"""The event bus of a process and its storages."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from plaita import event as events
from plaita.base.errors import InputError
from plaita.base.tenancy import reset_current_tenant, set_current_tenant
from plaita.core.buses import default_bus
from plaita.core.executor import FlowExecution
from plaita.event import (
    Event,
    EventBus,
    EventError,
    EventNotFoundError,
    EventSubscription,
    EventTimeoutError,
    InMemoryEventBus,
    InMemoryEventSubscriptionStorage,
    MemoryEventStorage,
    RetryPolicy,
    event_handler,
    get_default_event_bus,
    set_default_event_bus,
)
from plaita.telemetry import LogTelemetry
from tests.support.flows import chain, event, flow_of

NEWS = Event(event_type="news.local", data={"city": "Bonn", "votes": {"yes": 1}}, source="press", correlation_id="c")


class Flaky:
    """Fails the first ``failures`` times."""

    def __init__(self, failures: int) -> None:
        self.failures, self.seen = failures, 0

    def __call__(self, event: Event) -> None:
        self.seen += 1
        if self.seen <= self.failures:
            raise ConnectionError("not now")


@pytest.fixture
def telemetry() -> LogTelemetry:
    return LogTelemetry()


@pytest.fixture
def bus(telemetry: LogTelemetry) -> InMemoryEventBus:
    return InMemoryEventBus(telemetry)


@pytest.fixture
def own_default() -> Iterator[InMemoryEventBus]:
    before, bus = get_default_event_bus(), InMemoryEventBus()
    set_default_event_bus(bus)
    yield bus
    set_default_event_bus(before)


@pytest.mark.parametrize(("pattern", "told"), [
    (None, True), ("*", True), ("news.*", True), ("news.local", True), ("news", False), ("NEWS.*", False),
])  # fmt: skip
async def test_a_handler_is_told_of_the_types_it_names(bus: InMemoryEventBus, pattern: str | None, told: bool) -> None:
    seen: list[Event] = []
    await bus.register_handler(pattern, seen.append)
    await bus.publish(NEWS)
    await bus.drain()
    assert [e.event_id for e in seen] == ([NEWS.event_id] if told else [])


async def test_an_event_is_published_from_a_type_a_document_or_itself(bus: InMemoryEventBus) -> None:
    ids = await bus.batch_publish(["plain", {"event_type": "full", "data": {"a": 1}, "source": "s"}, NEWS])
    ids.append(await bus.publish("named", b=2))
    found = [await bus.get_event(event_id) for event_id in ids]
    assert [(e.event_type, e.data, e.source) for e in found] == [
        ("plain", {}, ""), ("full", {"a": 1}, "s"), (NEWS.event_type, NEWS.data, "press"), ("named", {"b": 2}, ""),
    ]  # fmt: skip
    with pytest.raises(EventNotFoundError, match="nobody"):
        await bus.get_event("nobody")


@pytest.mark.parametrize("wrong", [7, {"data": {}}, {"event_type": 5}])
async def test_what_is_no_event_is_refused(bus: InMemoryEventBus, wrong: Any) -> None:
    with pytest.raises(EventError):
        await bus.publish(wrong)


async def test_data_beside_an_event_is_refused(bus: InMemoryEventBus) -> None:
    with pytest.raises(EventError, match="cannot be added"):
        await bus.publish(NEWS, more=1)


def test_events_hold_json_and_have_a_type() -> None:
    with pytest.raises((InputError, ValidationError)):
        Event(event_type="a", data={"x": object()})
    for model in (Event, EventSubscription):
        with pytest.raises(ValidationError, match="not blank"):
            model(event_type=" ", data={})


@pytest.mark.parametrize(("condition", "fits"), [
    (None, True),
    ({}, True),
    ({"city": "Bonn"}, True),
    ({"city": "Ulm"}, False),
    ({"votes.yes": 1}, True),
    ({"votes.yes": True}, False),
    ({"votes.no": None}, False),
    ({"source": "press"}, True),
    ({"absent": None}, False),
])  # fmt: skip
async def test_a_filter_looks_into_the_data_and_then_at_the_event(
    bus: InMemoryEventBus, condition: dict[str, Any] | None, fits: bool
) -> None:
    seen: list[Event] = []
    await bus.register_handler("news.*", seen.append, condition)
    await bus.publish(NEWS)
    await bus.drain()
    assert bool(seen) is fits
    assert EventSubscription(event_type="news.local", filter_condition=condition).matches_event(NEWS) is fits


async def test_an_event_reaches_a_handler_once_unless_it_failed(bus: InMemoryEventBus) -> None:
    handler, counts = Flaky(1), []
    await bus.register_handler("news.*", handler)
    for _ in range(3):
        await bus.publish(NEWS)
        await bus.drain()
        counts.append(handler.seen)
    assert counts == [1, 2, 2]
    await bus.publish(NEWS, prevent_duplicate_consumption=False)
    await bus.drain()
    assert handler.seen == 3


@pytest.mark.parametrize(("retries", "attempts"), [(0, 1), (1, 1), (3, 3)])
async def test_a_retry_policy_counts_all_attempts(
    bus: InMemoryEventBus, telemetry: LogTelemetry, retries: int, attempts: int
) -> None:
    handler = Flaky(9)
    policy = RetryPolicy(max_retries=retries, initial_delay=0.001)
    await bus.register_handler("news.*", handler, retry_policy=policy)
    await bus.publish(NEWS)
    await bus.drain()
    assert handler.seen == attempts
    assert telemetry.numbers()["plaita_event_handlers_failed"] == 1


async def test_a_handler_may_be_a_coroutine_and_may_be_removed(bus: InMemoryEventBus) -> None:
    seen: list[str] = []

    async def handler(event: Event) -> None:
        seen.append(event.event_id)

    handler_id = await bus.register_handler(handler=handler)
    await bus.publish("one")
    await bus.drain()
    assert len(seen) == 1 and await bus.unregister_handler(handler_id)
    await bus.publish("two")
    await bus.drain()
    assert len(seen) == 1 and not await bus.unregister_handler(handler_id)


def test_a_handler_cannot_change_what_others_see(bus: InMemoryEventBus) -> None:
    seen: list[dict[str, Any]] = []

    def take(event: Event) -> None:
        seen.append(dict(event.data))
        event.data.clear()

    for _ in range(2):
        event_handler(bus, "news.*")(take)
    bus.publish_sync(NEWS)
    assert seen == [NEWS.data, NEWS.data] and NEWS.data


def test_without_a_loop_the_handlers_have_run_when_publish_sync_returns(bus: InMemoryEventBus) -> None:
    handler = Flaky(0)
    event_handler(bus, "news.*")(handler)
    bus.publish_sync(NEWS)
    assert handler.seen == 1


async def test_in_a_loop_publish_sync_starts_the_handlers(bus: InMemoryEventBus) -> None:
    handler = Flaky(0)
    await bus.register_handler("news.*", handler)
    bus.publish_sync(NEWS)
    await bus.drain()
    assert handler.seen == 1


async def test_who_waits_gets_the_next_event_that_satisfies_it(bus: InMemoryEventBus) -> None:
    waiting = asyncio.create_task(bus.wait_for_event("n", 10, lambda e: e.data["n"] == 2))
    await asyncio.sleep(0)
    for n in (1, 2, 2):
        await bus.publish("n", n=n)
    assert (await waiting).data == {"n": 2}


async def test_who_waits_hears_of_an_event_from_another_thread(bus: InMemoryEventBus) -> None:
    waiting = asyncio.create_task(bus.wait_for_event("n", 10))
    await asyncio.sleep(0)
    thread = threading.Thread(target=lambda: bus.publish_sync("n", n=1))
    thread.start()
    assert (await waiting).data == {"n": 1}
    await asyncio.to_thread(thread.join)


async def test_waiting_has_an_end(bus: InMemoryEventBus) -> None:
    await bus.publish("early")
    with pytest.raises(EventTimeoutError) as caught:
        await bus.wait_for_event("early", timeout=0.01)
    assert (caught.value.event_type, caught.value.timeout) == ("early", 0.01)


async def test_a_condition_that_fails_fails_its_waiter_only(bus: InMemoryEventBus) -> None:
    waiting = asyncio.create_task(bus.wait_for_event("n", 10, lambda e: bool(e.data["absent"])))
    await asyncio.sleep(0)
    await bus.publish("n")
    with pytest.raises(KeyError):
        await waiting


async def test_an_event_belongs_to_the_tenant_that_published_it(bus: InMemoryEventBus) -> None:
    token = set_current_tenant("acme")
    try:
        event_id = await bus.publish("n")
    finally:
        reset_current_tenant(token)
    found = await bus.get_event(event_id)
    assert found.tenant_id == "acme"
    assert not EventSubscription(event_type="n", tenant_id="other").matches_event(found)


SUBSCRIBED: dict[str, Any] = {"event_type": "news.local", "correlation_id": "c", "flow_id": "F", "node_id": "N"}


@pytest.mark.parametrize(("event", "context", "matches"), [
    (NEWS, {}, True),
    (NEWS, {"$FLOW_ID": "F", "$LAST_NODE": "N"}, True),
    (NEWS, {"$FLOW_ID": "G", "$LAST_NODE": "N"}, False),
    (NEWS, {"$FLOW_ID": "F", "$LAST_NODE": "M"}, False),
    (NEWS.model_copy(update={"correlation_id": None}), {}, False),
    (NEWS.model_copy(update={"event_type": "news"}), {}, False),
])  # fmt: skip
async def test_subscriptions_are_found_by_event_and_context(
    event: Event, context: dict[str, Any], matches: bool
) -> None:
    storage = InMemoryEventSubscriptionStorage()
    await storage.store_subscription(EventSubscription(**SUBSCRIBED))
    assert bool(await storage.find_matching_subscriptions(event, context)) is matches


async def test_a_subscription_is_offered_an_event_until_it_is_processed(bus: InMemoryEventBus) -> None:
    sub_id = await bus.register_subscription(**SUBSCRIBED, filter_condition={"city": "Bonn"}, timeout=3)
    storage = bus.subscription_storage
    assert [s.subscription_id for s in await storage.find_unprocessed_matching_subscriptions(NEWS)] == [sub_id]
    assert await storage.batch_mark_processed(sub_id, [NEWS.event_id])
    assert await storage.find_unprocessed_matching_subscriptions(NEWS) == []
    assert [s.timeout for s in await storage.find_matching_subscriptions(NEWS)] == [3]
    assert await bus.unregister_subscription(sub_id) and not await bus.unregister_subscription(sub_id)
    assert await storage.get_subscription(sub_id) is None and not await storage.mark_event_processed(sub_id, "e")


async def test_a_storage_keeps_the_latest_events_and_counts_the_others(telemetry: LogTelemetry) -> None:
    storage = MemoryEventStorage(events_max=2, telemetry=telemetry)
    kept = [Event(event_id=str(n), event_type="n", data={}, timestamp=float(n)) for n in range(3)]
    assert await storage.batch_store_events(kept) == ["0", "1", "2"]
    assert [e.event_id for e in await storage.list_events("n")] == ["1", "2"]
    assert [e.event_id for e in await storage.list_events(start_time=2, end_time=2)] == ["2"]
    assert telemetry.numbers()["plaita_events_forgotten"] == 1
    assert await storage.delete_event("2") and not await storage.delete_event("2")
    assert await storage.get_event("2") is None


def test_an_execution_that_waits_subscribes_at_the_bus_of_the_process(own_default: InMemoryEventBus) -> None:
    assert default_bus() is own_default
    flow = flow_of(chain(event("w", eventFilter={"n": 1}), flow_id="F"))
    step = FlowExecution().run_distributed(flow, {})
    step = FlowExecution().run_distributed(flow, saved_context=step["context"])
    [found] = asyncio.run(own_default.subscription_storage.list_subscriptions())
    assert step["result"]["subscription_id"] == found.subscription_id
    assert (found.correlation_id, found.node_id, found.filter_condition) == (step["execution_id"], "w", {"n": 1})
    answer = {"subscription_id": found.subscription_id}
    FlowExecution().run_distributed(flow, saved_context=step["context"], resume_type="event", resume_data=answer)
    assert asyncio.run(own_default.subscription_storage.list_subscriptions()) == []


class Recorder(EventBus):
    """A bus of one's own."""

    def __init__(self) -> None:
        self.published: list[Event] = []

    async def publish(self, event: Any, prevent_duplicate_consumption: bool = True, **data: Any) -> str:
        self.published.append(events.normalize_event(event, data))
        return self.published[-1].event_id

    async def get_event(self, event_id: str) -> Event:
        raise EventNotFoundError(event_id)

    async def register_handler(self, *args: Any, **kwargs: Any) -> str:
        return "h"

    async def register_subscription(self, event_type: str, *args: Any, **kwargs: Any) -> str:
        return "s"

    async def unregister_subscription(self, subscription_id: str) -> bool:
        return True

    async def wait_for_event(self, event_type: str, *args: Any, **kwargs: Any) -> Event:
        raise EventTimeoutError(event_type, 0)


def test_a_bus_of_ones_own_publishes_from_synchronous_code() -> None:
    bus = Recorder()
    event_id = bus.publish_sync("n", n=1)
    assert [(e.event_id, e.data) for e in bus.published] == [(event_id, {"n": 1})]


async def test_a_bus_of_ones_own_is_awaited_where_a_loop_runs() -> None:
    with pytest.raises(EventError, match="await publish"):
        Recorder().publish_sync("n")
    assert len(await Recorder().batch_publish(["a", "b"])) == 2
