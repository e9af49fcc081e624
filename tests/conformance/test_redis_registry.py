"""The documented registry and control channel: what programs do there, and what a worker shows of itself."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from plaita.backends.redis import RedisBackend
from plaita.base.errors import InputError
from plaita.ports.processes import Facts, Process
from plaita.server.control import ControlCommand, ControlListener
from plaita.server.registry import ServiceInfo, ServiceRegistry
from plaita.server.worker import Surroundings, Worker, WorkerOptions
from plaita.telemetry import LogTelemetry
from plaita.testing.conformance.stage import start
from tests.servers import redis_server

PATIENCE_S = 10
KEY = "plaita:registry:flow_worker:w-1"


@pytest.fixture
def registry(client: redis.Redis) -> ServiceRegistry:
    return ServiceRegistry(client)


async def test_who_leaves_a_full_server_is_gone_and_what_it_held_is_due() -> None:
    with redis_server() as url, redis.Redis.from_url(url) as client:
        store = RedisBackend(url)
        await store.announce(Process("one", 1, ("default",), None, (), 5, Facts("w-1", listed=True)))
        await store.submit(start())
        await store.claim("one.n", 1)
        client.config_set("maxmemory", "1kb")
        await store.withdraw("one")
        living, [again] = await store.living(), await store.claim("two.n", 1)
        left = json.loads(client.get(KEY) or b"{}")
        await store.close()
    assert (living, again.takeover, left.get("status")) == ([], True, "stopped")


def service(name: str = "i1", **fields: Any) -> ServiceInfo:
    return ServiceInfo(name, "mine", "host", **fields)


def stored(client: redis.Redis, key: str) -> dict[str, Any] | None:
    raw = client.get(key)
    found: dict[str, Any] | None = None if raw is None else json.loads(str(raw))
    return found


def test_a_registered_service_runs_and_its_record_runs_out(client: redis.Redis, registry: ServiceRegistry) -> None:
    assert registry.register(service(metadata={"a": 1}))
    found = registry.get_service("mine", "i1")
    assert found is not None
    assert (found.status, found.metadata, found.host) == ("running", {"a": 1}, "host")
    ttl = client.ttl("plaita:registry:mine:i1")
    assert isinstance(ttl, int) and 0 < ttl <= 30


@pytest.mark.parametrize(
    ("status", "registered", "then"),
    [
        ("draining", True, "draining"),
        ("stopping", True, "stopping"),
        ("stopped", False, "stopped"),
        ("closed", False, "closed"),
    ],
)
def test_registering_takes_nobody_back_who_is_leaving(
    registry: ServiceRegistry, status: str, registered: bool, then: str
) -> None:
    mine = service(status=status)
    assert (registry.register(mine), mine.status) == (registered, then)


def test_a_new_status_is_written_at_once_and_the_rest_with_the_next_beat(registry: ServiceRegistry) -> None:
    mine = service()
    registry.register(mine)
    registry.update_service_info(active_tasks=3)
    before = registry.get_service("mine", "i1")
    registry.update_service_info(status="draining")
    after = registry.get_service("mine", "i1")
    assert before is not None and after is not None
    assert (before.active_tasks, after.active_tasks, after.status) == (0, 3, "draining")
    with pytest.raises(InputError, match="'asleep' is none of"):
        registry.update_service_info(status="asleep")


def test_a_service_that_was_taken_out_does_not_come_back_by_a_beat(
    client: redis.Redis, registry: ServiceRegistry
) -> None:
    mine = service()
    registry.register(mine)
    assert registry.unregister("mine", "i1")
    assert not registry.heartbeat(mine)
    assert stored(client, "plaita:registry:mine:i1") is None


def test_services_are_listed_by_type_and_a_broken_record_hides_none(
    client: redis.Redis, registry: ServiceRegistry
) -> None:
    for one in (service("b"), service("a"), ServiceInfo("c", "other", "host")):
        registry.register(one)
    client.set("plaita:registry:mine:broken", "{")
    client.set("plaita:registry:mine:strange", "[1]")
    assert [s.instance_id for s in registry.list_services()] == ["a", "b", "c"]
    assert [s.instance_id for s in registry.list_services("other")] == ["c"]
    assert registry.get_service_types() == ["mine", "other"]
    assert registry.get_service("mine", "broken") is None


def test_a_thread_beats_until_it_is_stopped(client: redis.Redis) -> None:
    registry, mine, beaten = ServiceRegistry(client, ttl=30, heartbeat_interval=0), service(), threading.Event()
    registry.register(mine)
    client.delete("plaita:registry:mine:i1")

    def may() -> bool:
        if stored(client, "plaita:registry:mine:i1") is not None:
            beaten.set()
        return True

    registry.start_heartbeat(mine, may)
    assert beaten.wait(PATIENCE_S)
    registry.stop_heartbeat()


def test_a_registry_that_is_away_stops_nobody() -> None:
    with redis.Redis(unix_socket_path="/nowhere", retry=Retry(NoBackoff(), 0)) as nobody:
        registry = ServiceRegistry(nobody)
        answers = (
            registry.register(service()), registry.heartbeat(service()), registry.list_services(),
            registry.get_service_types(), registry.get_service("a", "b"), registry.unregister("a", "b"),
        )  # fmt: skip
    assert answers == (False, False, [], [], None, False)


@pytest.mark.parametrize("name", ["", "a:b"])
def test_a_name_that_readers_would_take_apart_is_refused(registry: ServiceRegistry, name: str) -> None:
    with pytest.raises(InputError, match="instance_id"):
        registry.register(service(name))


def test_a_listener_obeys_what_it_was_given_handlers_for_and_survives_the_rest(client: redis.Redis) -> None:
    heard: list[object] = []
    done = threading.Event()

    def fail(command: ControlCommand) -> None:
        heard.append("fails")
        raise RuntimeError("no")

    def stop(graceful: bool) -> None:
        heard.append(graceful)
        done.set()

    def status() -> dict[str, Any]:
        heard.append("status")
        return {"well": True}

    listener = ControlListener(client, "i1", on_stop=stop, on_status=status)
    listener.register_handler("mine", lambda command: heard.append(command.extra))
    listener.register_handler("fails", fail)
    listener.start()
    for text in ('{"command": "status"}', "{", "[1]", '{"x": 1}', '{"command": "other"}', '{"command": "fails"}',
                 '{"command": "mine", "q": 2}', '{"command": "stop", "graceful": false}'):  # fmt: skip
        client.publish("plaita:control:i1", text)
    assert done.wait(PATIENCE_S)
    listener.stop()
    assert heard == ["status", "fails", {"q": 2}, False]


@asynccontextmanager
async def working(url: str, **options: Any) -> AsyncIterator[asyncio.Task[None]]:
    """A worker named w-1 that takes executions."""
    store, ready, stop = RedisBackend(url), asyncio.Event(), asyncio.Event()
    facts = Facts("w-1", "host/1.2.3.4", version="9", listed=True, setup={"attempts_max": 5})
    around = Surroundings(telemetry=LogTelemetry(), ready=ready.set)
    worker = Worker(store, WorkerOptions(poll_ms=20, facts=facts, concurrency=7, **options), around)
    task = asyncio.create_task(worker.run(stop))
    try:
        await asyncio.wait([task, asyncio.create_task(ready.wait())], return_when=asyncio.FIRST_COMPLETED)
        yield task
    finally:
        stop.set()
        await task
        await store.close()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    nobody = asyncio.Event()
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():
            with suppress(TimeoutError):
                await asyncio.wait_for(nobody.wait(), 0.01)


async def test_a_worker_shows_itself_in_the_documented_fields(redis_url: str, client: redis.Redis) -> None:
    async with working(redis_url):
        found = stored(client, KEY)
        ttl = client.pttl(KEY)
    assert found is not None
    assert set(found) == {
        "instance_id", "service_type", "host", "status", "start_time", "metadata", "active_tasks", "last_heartbeat",
    }  # fmt: skip
    assert (found["instance_id"], found["status"], found["host"]) == ("w-1", "running", "host/1.2.3.4")
    metadata = found["metadata"]
    assert (metadata["queue_name"], metadata["dlq_key"]) == ("plaita:flow:queue", "plaita:flow:queue:dlq")
    assert (metadata["consumer_group"], metadata["lease_ttl_seconds"], metadata["max_deliveries"]) == (
        "plaita-workers", 10, 5,
    )  # fmt: skip
    capacity = json.loads(metadata["worker_capacity"])
    assert (capacity["schema_version"], capacity["concurrency"], capacity["active_tasks"]) == (1, 7, 0)
    assert isinstance(ttl, int) and 0 < ttl <= 30_000


async def test_a_worker_that_left_is_stopped_for_five_seconds_and_then_gone(
    redis_url: str, client: redis.Redis
) -> None:
    async with working(redis_url, beat_ms=10):
        pass
    found, ttl = stored(client, KEY), client.pttl(KEY)
    assert found is not None and found["status"] == "stopped"
    assert isinstance(ttl, int) and 0 < ttl <= 5_000


async def test_a_beat_brings_back_a_record_that_ran_out_while_the_worker_lives(
    redis_url: str, client: redis.Redis
) -> None:
    async with working(redis_url, beat_ms=10):
        client.delete(KEY)

        async def back() -> bool:
            return stored(client, KEY) is not None

        await until(back)


@pytest.mark.parametrize("graceful", [True, False])
async def test_a_worker_obeys_stop_over_its_control_channel(
    redis_url: str, client: redis.Redis, graceful: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "plaita")
    async with working(redis_url) as task:

        async def heard() -> bool:
            return bool(client.publish("plaita:control:w-1", '{"command": "status"}'))

        await until(heard)
        client.publish("plaita:control:w-1", "nonsense")
        client.publish("plaita:control:w-1", json.dumps({"command": "stop", "graceful": graceful}))
        await asyncio.wait_for(asyncio.shield(task), PATIENCE_S)
    events = [getattr(record, "plaita_event", "") for record in caplog.records]
    assert {"worker_status", "command_unknown", "command_heard", "worker_stopped"} <= set(events)
