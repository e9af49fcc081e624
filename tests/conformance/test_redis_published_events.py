"""Events that programs publish on Redis under the documented keys, and the executions of a store that wait for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis

from plaita.backends.redis import RedisBackend
from plaita.base.json import decode
from plaita.control.starting import StartOptions, publish, start_published
from plaita.core.flow import Flow
from plaita.ports.values import RunId
from plaita.server.worker import Worker, WorkerOptions
from plaita.server.worker.bridge import EventBridge, Looking, bridged, look
from plaita.telemetry import LogTelemetry

HOW = Looking(every_ms=300_000, back_s=60, batch=2)


def flow(flow_id: str = "ev", **fields: Any) -> Flow:
    nodes = [
        {"type": "start", "id": "s", "next": "a"},
        {"type": "event", "id": "a", "event_type": "go", "next": "e", **fields},
        {"type": "end", "id": "e", "output": "$NODE.a.event_data"},
    ]
    return Flow.model_validate({"flow_id": flow_id, "nodes": nodes})


def event(event_id: str, to: str | None, data: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "event_id": event_id, "event_type": "go", "data": data or {"n": 1}, "timestamp": 0.0, "correlation_id": to,
        "tenant_id": None, "source": "", **fields,
    }  # fmt: skip


class Fleet:
    """A store, one worker of it, and a program on the same server."""

    def __init__(self, url: str) -> None:
        self.store = RedisBackend(url)
        self.client = redis.Redis.from_url(url)
        self.telemetry = LogTelemetry()
        self.bridge = EventBridge(self.store, self.store.programs, self.telemetry, None)

    async def start(self, name: str, flow_id: str = "ev", tenant: str = "default") -> None:
        await start_published(self.store, flow_id, {}, StartOptions(execution_id=name, tenant=tenant))
        await self.until(name, "suspended", "completed")

    async def until(self, name: str, *statuses: str) -> str:
        stop, worker = asyncio.Event(), Worker(self.store, WorkerOptions(poll_ms=20))
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            group.create_task(worker.run(stop))
            while await self.status(name) not in statuses:
                await worker.changed(10)
            stop.set()
        return await self.status(name)

    async def moved(self, name: str, node_id: str) -> None:
        """Work until it waits at that node."""
        stop, worker = asyncio.Event(), Worker(self.store, WorkerOptions(poll_ms=20))
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            group.create_task(worker.run(stop))
            while [w.node_id for w in await self.store.waits(RunId(name))] != [node_id]:
                await worker.changed(10)
            stop.set()

    async def status(self, name: str) -> str:
        view = await self.store.run(RunId(name))
        return "absent" if view is None else view.status

    async def output(self, name: str) -> Any:
        await self.until(name, "completed")
        view = await self.store.run(RunId(name))
        assert view is not None
        assert view.output is not None
        return decode(view.output)

    async def say(self, **said: Any) -> bool:
        return await self.bridge.handle(json.dumps(event(**said)).encode())

    async def is_open(self, name: str) -> bool:
        return bool(await self.store.waits(RunId(name)))

    def keep(self, one: dict[str, Any]) -> None:
        self.client.set(f"plaita:event:events:{one['event_id']}", json.dumps(one))
        self.client.zadd(f"plaita:event:types:{one['event_type']}", {one["event_id"]: one["timestamp"]})


@pytest.fixture
async def fleet(redis_url: str) -> AsyncIterator[Fleet]:
    found = Fleet(redis_url)
    await publish(found.store, flow())
    yield found
    assert await found.store.audit() == []
    await found.store.close()
    found.client.close()


async def test_an_event_reaches_the_execution_it_names_and_no_other(fleet: Fleet) -> None:
    for name in ("a", "b"):
        await fleet.start(name)
    assert await fleet.say(event_id="1", to="a", data={"n": 7})
    assert await fleet.output("a") == {"n": 7}
    assert await fleet.is_open("b")


@pytest.mark.parametrize(
    "said",
    [
        {"to": None}, {"to": "nobody"}, {"to": "a", "event_type": "other"}, {"to": "a", "tenant_id": "acme"},
    ],
    ids=["without a correlation", "of nobody", "of another type", "of another tenant"],
)  # fmt: skip
async def test_an_event_that_is_not_meant_for_it_changes_nothing(fleet: Fleet, said: dict[str, Any]) -> None:
    await fleet.start("a")
    assert not await fleet.say(event_id="1", **said)
    assert await fleet.is_open("a")
    assert await fleet.say(event_id="1", to="a")


async def test_an_event_of_a_tenant_reaches_its_execution_only(fleet: Fleet) -> None:
    await fleet.start("a", tenant="acme")
    assert not await fleet.say(event_id="1", to="a")
    assert fleet.telemetry.numbers()["plaita_events_foreign"] == 1
    assert await fleet.say(event_id="2", to="a", tenant_id="acme")


async def test_the_filter_of_a_wait_is_asked(fleet: Fleet) -> None:
    await publish(fleet.store, flow("filtered", event_filter={"order.id": 5, "source": "shop"}))
    await fleet.start("a", "filtered")
    assert not await fleet.say(event_id="1", to="a", data={"order": {"id": 4}}, source="shop")
    assert not await fleet.say(event_id="2", to="a", data={"order": {}}, source="shop")
    assert await fleet.say(event_id="3", to="a", data={"order": {"id": 5}}, source="shop")


async def test_an_event_is_given_once_whoever_hears_it_and_however_often(fleet: Fleet) -> None:
    await fleet.start("a")
    said = await asyncio.gather(*(fleet.say(event_id="1", to="a") for _ in range(5)))
    assert sorted(said) == [False] * 4 + [True]
    fleet.client.delete("plaita:event_filter:taken:1")
    assert not await fleet.say(event_id="1", to="a")
    assert await fleet.output("a") == {"n": 1}


async def test_a_repeated_event_does_not_answer_the_next_wait(fleet: Fleet) -> None:
    await publish(fleet.store, _two_waits())
    await fleet.start("a", "twice")
    assert await fleet.say(event_id="1", to="a")
    await fleet.moved("a", "b")
    fleet.client.delete("plaita:event_filter:taken:1")
    assert not await fleet.say(event_id="1", to="a")
    assert await fleet.say(event_id="2", to="a", data={"n": 2})
    assert await fleet.output("a") == [{"n": 1}, {"n": 2}]


def _two_waits() -> Flow:
    nodes = [
        {"type": "start", "id": "s", "next": "a"},
        {"type": "event", "id": "a", "event_type": "go", "next": "b"},
        {"type": "event", "id": "b", "event_type": "go", "next": "e"},
        {"type": "end", "id": "e", "output": ["$NODE.a.event_data", "$NODE.b.event_data"]},
    ]
    return Flow.model_validate({"flow_id": "twice", "nodes": nodes})


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"event_id": 1}', b'{"event_type": "go", "data": {"a": NaN}}'])
async def test_what_is_no_event_is_counted_and_passed_over(fleet: Fleet, raw: bytes) -> None:
    assert not await fleet.bridge.handle(raw)
    assert fleet.telemetry.numbers()["plaita_events_unreadable"] == 1


async def test_what_was_not_heard_is_found_behind_the_cursor_and_in_order(fleet: Fleet) -> None:
    heard: list[str] = []

    async def hear(raw: bytes) -> None:
        heard.append(json.loads(raw)["event_id"])

    for i, at in enumerate([30.0, 50.0, 50.0, 50.0, 50.0, 60.0, 75.0]):
        fleet.keep(event(f"e{i}", None, timestamp=at, event_type=f"t{i % 2}"))
    fleet.client.delete("plaita:event:events:e3")
    assert await look(fleet.store.programs, hear, 100.0, HOW) == 5
    assert heard == ["e1", "e2", "e4", "e5", "e6"]
    assert fleet.client.get("plaita:event_reconcile:cursor") == b"100.0"
    fleet.keep(event("late", None, timestamp=110.0))
    assert await look(fleet.store.programs, hear, 120.0, HOW) == 1


async def test_the_cursor_stays_before_what_could_not_be_handled(fleet: Fleet) -> None:
    async def hear(raw: bytes) -> None:
        if b'"e2"' in raw:
            raise ConnectionError

    for i in range(4):
        fleet.keep(event(f"e{i}", None, timestamp=50.0 + i))
    with pytest.raises(ConnectionError):
        await look(fleet.store.programs, hear, 100.0, HOW)
    assert fleet.client.get("plaita:event_reconcile:cursor") == b"51.0|e1"


async def test_an_event_on_its_channel_resumes_an_execution_of_a_running_fleet(fleet: Fleet) -> None:
    await fleet.start("a")
    async with bridged(fleet.store, fleet.store.programs, fleet.telemetry, HOW):
        channel, message = "plaita:events:go", json.dumps(event("1", "a"))
        async with asyncio.timeout(10):
            while not fleet.client.publish(channel, message):
                await asyncio.to_thread(fleet.client.ping)
            assert await fleet.output("a") == {"n": 1}


async def test_a_fleet_hears_again_when_its_connection_was_lost(fleet: Fleet) -> None:
    await fleet.start("a")
    async with bridged(fleet.store, fleet.store.programs, fleet.telemetry, None), asyncio.timeout(15):
        while not fleet.client.pubsub_numpat():
            await asyncio.to_thread(fleet.client.ping)
        fleet.client.client_kill_filter(_type="pubsub")
        while not fleet.telemetry.numbers()["plaita_store_unavailable"]:
            await asyncio.to_thread(fleet.client.ping)
        while not fleet.client.publish("plaita:events:go", json.dumps(event("1", "a"))):
            await asyncio.to_thread(fleet.client.ping)
        assert await fleet.output("a") == {"n": 1}


async def test_an_event_that_nobody_heard_is_found_when_a_worker_begins(fleet: Fleet) -> None:
    await fleet.start("a")
    now = await fleet.store.now_ms() / 1000
    fleet.keep(event("1", "a", timestamp=now - 1))
    async with bridged(fleet.store, fleet.store.programs, fleet.telemetry, HOW), asyncio.timeout(10):
        assert await fleet.output("a") == {"n": 1}
