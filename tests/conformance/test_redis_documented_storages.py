"""The documented storages and the documented queue over a Redis server, as programs use them."""

from __future__ import annotations

import contextvars
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
import redis

from plaita.base.errors import Conflict, InputError, NotSupported, TenantContextMissingError
from plaita.server.factory import create_storage_component
from plaita.server.task_queue import RedisStreamTaskQueue, enqueue_task
from plaita.server.tenant_context import set_current_tenant
from plaita.settings import Settings, StoreSettings, use_settings
from plaita.storage import ExecutionState, RedisExecutionStorage, RedisFlowStorage
from plaita.storage.redis import url_of

STREAM = "jobs"
FLOW = {
    "flow_id": "waits", "version": "1",
    "nodes": [
        {"id": "start", "type": "start", "next": "wait"},
        {"id": "wait", "type": "event", "event_type": "go", "next": "end"},
        {"id": "end", "type": "end"},
    ],
}  # fmt: skip


@pytest.fixture
def executions(client: redis.Redis) -> Iterator[RedisExecutionStorage]:
    storage = RedisExecutionStorage(client=client)
    yield storage
    storage.close()


@pytest.fixture
def multi() -> Iterator[None]:
    use_settings(Settings(store=StoreSettings(tenancy="multi")))
    yield
    use_settings(None)


def ended(execution_id: str, **more: Any) -> ExecutionState:
    fields: dict[str, Any] = {"flow_id": "f", "context": {}, "status": "cancelled", **more}
    return ExecutionState(execution_id=execution_id, **fields)


def entries(client: redis.Redis, stream: str) -> list[tuple[str, dict[str, str]]]:
    found: Any = client.xrange(stream)
    return list(found)


def watch(client: Any) -> Any:
    return client.pubsub()


def within(tenant: str | None, work: Any) -> Any:
    """Do work in a context of its own, for a tenant."""

    def run() -> Any:
        if tenant is not None:
            set_current_tenant(tenant)
        return work()

    return contextvars.Context().run(run)


def test_a_saved_execution_is_found_and_listed_in_order_of_its_start(executions: RedisExecutionStorage) -> None:
    for name in ("b", "a"):
        assert executions.save_execution_state(name, ended(name))
    found = executions.load_execution_state("a")
    assert found is not None
    assert (found.status, found.tenant_id) == ("cancelled", "default")
    assert [s.execution_id for s in executions.list_executions()] == ["b", "a"]
    assert [s.execution_id for s in executions.list_executions(order_by="-start_time", limit=1)] == ["a"]


def test_an_execution_is_saved_where_operators_look(executions: RedisExecutionStorage, client: redis.Redis) -> None:
    executions.save_execution_state("a", ended("a"))
    assert json.loads(str(client.get("plaita:execution:a")))["status"] == "cancelled"
    assert client.zrange("plaita:execution:index", 0, -1) == ["a"]


def test_a_deleted_execution_leaves_a_tombstone(executions: RedisExecutionStorage) -> None:
    executions.save_execution_state("a", ended("a"))
    assert executions.delete_execution_state("a")
    tombstone = executions.load_execution_tombstone("a")
    assert tombstone is not None
    assert (tombstone["tenant"], tombstone["reason"]) == ("default", "execution_deleted")
    assert executions.load_execution_state("a") is None
    assert executions.delete_execution_state("a")
    with pytest.raises(Conflict, match="deleted"):
        executions.save_execution_state("a", ended("a"))


def test_a_living_execution_is_not_deleted(executions: RedisExecutionStorage, client: redis.Redis) -> None:
    flows = RedisFlowStorage(client=client)
    flows.save_flow(FLOW)
    flows.close()
    executions.save_execution_state("a", ended("a", flow_id="waits", status="running"))
    with pytest.raises(Conflict, match="execution a is running"):
        executions.delete_execution_state("a")


def test_each_tenant_sees_its_own(executions: RedisExecutionStorage, client: redis.Redis) -> None:
    within("acme", lambda: executions.save_execution_state("a", ended("a")))
    assert executions.load_execution_state("a") is None
    assert executions.list_executions() == []
    assert within("acme", lambda: [s.execution_id for s in executions.list_executions()]) == ["a"]
    assert executions.delete_execution_state("a")
    assert client.exists("plaita:acme:execution:a")


@pytest.mark.usefixtures("multi")
def test_with_several_tenants_a_write_says_for_whom(executions: RedisExecutionStorage) -> None:
    for write in (
        lambda: executions.save_execution_state("a", ended("a")),
        lambda: executions.delete_execution_state("a"),
    ):
        with pytest.raises(TenantContextMissingError, match="for which tenant"):
            within(None, write)
    assert within("default", lambda: executions.save_execution_state("a", ended("a")))
    assert within(None, lambda: executions.save_execution_state("b", ended("b", tenant_id="acme")))
    assert within(None, lambda: executions.load_execution_state("a")) is not None


def test_storages_on_redis_are_made_by_name(client: redis.Redis) -> None:
    path = client.connection_pool.connection_kwargs["path"]
    flows = create_storage_component("redis", "flow", unix_socket_path=path)
    saved, found = flows.save_flow(FLOW), flows.get_flow("waits")
    flows.close()
    assert (saved, found["flow_id"]) == (True, "waits")
    for kind in ("event", "event_storage", "subscription"):
        assert create_storage_component("redis", kind, redis_url="redis://localhost:1")
    with pytest.raises(NotSupported):
        create_storage_component("redis", "nothing")


def test_another_namespace_is_another_store(executions: RedisExecutionStorage, client: redis.Redis) -> None:
    other = RedisExecutionStorage(client=client, namespace="other")
    other.save_execution_state("a", ended("a"))
    other.close()
    assert executions.load_execution_state("a") is None
    assert client.exists("other:execution:a")


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "redis://localhost:6379/0"),
        ({"host": "h", "port": 7, "db": 3, "password": "p@/"}, "redis://:p%40%2F@h:7/3"),
        ({"host": "::1", "username": "u", "password": "p"}, "redis://u:p@[::1]:6379/0"),
        ({"unix_socket_path": "/a b/s", "db": 1}, "unix:///a%20b/s?db=1"),
        (
            {"host": "h", "ssl": True, "ssl_ca_certs": "/ca.pem", "ssl_cert_reqs": "none", "ssl_check_hostname": False},
            "rediss://h:6379/0?ssl_ca_certs=%2Fca.pem&ssl_cert_reqs=none&ssl_check_hostname=false",
        ),
    ],
)
def test_arguments_of_the_client_are_a_url(given: dict[str, Any], url: str) -> None:
    assert url_of(given) == url
    assert url_of({}, redis.Redis(**given)) == url


def test_what_is_no_client_is_refused() -> None:
    with pytest.raises(InputError, match="client"):
        url_of({}, "redis://h")


def test_a_task_is_appended_with_a_time_and_a_version(client: redis.Redis) -> None:
    task = {"type": "start", "flow_id": "ü", "timestamp": " "}
    entry = enqueue_task(client, STREAM, task, config_family="cf1-fe07261d70a0")
    [(found, fields)] = entries(client, STREAM)
    body = json.loads(fields["payload"])
    assert (found, fields["schema_version"], fields["config_family"]) == (entry, "1", "cf1-fe07261d70a0")
    assert datetime.fromisoformat(body.pop("timestamp")).tzinfo is not None
    assert (body, task["timestamp"]) == ({"type": "start", "flow_id": "ü"}, " ")
    assert "ü" in fields["payload"]


def test_a_time_that_a_task_has_stays(client: redis.Redis) -> None:
    enqueue_task(client, STREAM, {"timestamp": "2026-01-01T00:00:00"}, default_timestamp="2027-01-01T00:00:00")
    enqueue_task(client, STREAM, {}, default_timestamp="2027-01-01T00:00:00")
    times = [json.loads(fields["payload"])["timestamp"] for _, fields in entries(client, STREAM)]
    assert times == ["2026-01-01T00:00:00", "2027-01-01T00:00:00"]


def test_a_task_of_the_inbox_wakes_sleeping_workers(client: redis.Redis) -> None:
    with watch(client) as listening:
        listening.subscribe("plaita:hints")
        listening.get_message(timeout=5)
        enqueue_task(client, "plaita:flow:queue", {"type": "cancel"})
        told = listening.get_message(timeout=5)
    assert told is not None
    assert told["type"] == "message"


def test_a_task_is_read_once_and_gone_when_it_is_acknowledged(client: redis.Redis) -> None:
    queue = RedisStreamTaskQueue(client, STREAM)
    queue.enqueue({"n": 1})
    task = queue.read(block_ms=1)
    assert task is not None
    assert task.body["n"] == 1
    assert queue.read(block_ms=1) is None
    assert (queue.stats()["enqueued"], queue.stats()["pending"]) == (1, 1)
    queue.ack(task.message_id)
    assert (queue.stats()["pending"], client.xlen(STREAM)) == (0, 0)


def test_a_task_that_its_reader_left_goes_to_another_and_then_to_the_dead_letters(client: redis.Redis) -> None:
    RedisStreamTaskQueue(client, STREAM, consumer_name="first").enqueue({"n": 1})
    queues = [RedisStreamTaskQueue(client, STREAM, claim_min_idle_ms=0, max_deliveries=2) for _ in range(3)]
    delivered = [queue.read(block_ms=1) for queue in queues]
    [(_, fields)] = entries(client, f"{STREAM}:dlq")
    letter = json.loads(fields["payload"])
    assert [task and task.delivery_count for task in delivered] == [0, 1, None]
    assert (letter["reason"], letter["delivery_count"], letter["payload"]["n"]) == ("max_deliveries=2", 2, 1)
    assert (queues[2].stats()["dead_lettered"], queues[2].stats()["pending"]) == (1, 0)


@pytest.mark.parametrize("says", [False, ZeroDivisionError])
def test_a_guard_keeps_a_task_pending_and_others_go_on(client: redis.Redis, says: Any) -> None:
    def guard(task: Any) -> bool:
        if says is ZeroDivisionError:
            raise ZeroDivisionError
        return bool(says)

    queue = RedisStreamTaskQueue(client, STREAM, claim_min_idle_ms=0, max_deliveries=1, dlq_guard=guard)
    queue.enqueue({"n": 1})
    queue.read(block_ms=1)
    queue.enqueue({"n": 2})
    task = queue.read(block_ms=1)
    assert task is not None
    assert task.body["n"] == 2
    assert (queue.stats()["dlq_guard_skipped"], queue.stats()["pending"], queue.stats()["dead_lettered"]) == (1, 2, 0)


def test_what_is_no_task_is_a_dead_letter_and_the_newest_are_kept(client: redis.Redis) -> None:
    queue = RedisStreamTaskQueue(client, STREAM, dlq_max_len=2)
    for text in ("[", "3", "[4]"):
        client.xadd(STREAM, {"payload": text})
        assert queue.read(block_ms=1) is None
    letters = [json.loads(fields["payload"]) for _, fields in entries(client, queue.dlq_key)]
    assert [letter["payload"] for letter in letters] == ["3", "[4]"]
    assert all(letter["reason"].startswith("invalid_payload: ") for letter in letters)


def test_a_program_may_bury_a_task_itself(client: redis.Redis) -> None:
    queue = RedisStreamTaskQueue(client, STREAM, dlq_key="buried")
    queue.enqueue({"n": 1})
    task = queue.read(block_ms=1)
    assert task is not None
    queue.dead_letter(task, reason="not for us")
    [(_, fields)] = entries(client, "buried")
    assert json.loads(fields["payload"])["reason"] == "not for us"
    assert client.xlen(STREAM) == 0


def test_a_task_dies_once_however_often_it_is_buried(client: redis.Redis) -> None:
    queue = RedisStreamTaskQueue(client, STREAM)
    queue.enqueue({"n": 1})
    task = queue.read(block_ms=1)
    assert task is not None
    for _ in range(2):
        queue.dead_letter(task, reason="not for us")
    assert (client.xlen(queue.dlq_key), queue.stats()["dead_lettered"]) == (1, 1)


def test_what_the_dead_letters_have_no_room_for_is_counted(client: redis.Redis) -> None:
    queue = RedisStreamTaskQueue(client, STREAM, dlq_max_len=1)
    for text in ("[", "3", "[4]"):
        client.xadd(STREAM, {"payload": text})
        queue.read(block_ms=1)
    assert queue.stats()["dlq_trimmed"] == 2
