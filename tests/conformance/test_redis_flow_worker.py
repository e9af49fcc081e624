"""A worker of a store on Redis inside a program, on a stream and in a group of other names."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest
import redis

from plaita.backends.generations import generations
from plaita.base.errors import InputError
from plaita.server.execution_lease import ExecutionLeaseError, RedisExecutionLease
from plaita.server.flow_worker import FlowWorker, RedisFlowWorker
from plaita.server.task_queue import enqueue_task
from plaita.storage import RedisExecutionStorage, RedisFlowStorage
from tests.servers import free_port
from tests.support.fleet import wait_until
from tests.unit.test_flow_worker import SUM, WAITS

QUEUE, DEAD = "it's my {queue}", "my dead"


Storages = tuple[RedisExecutionStorage, RedisFlowStorage]


@pytest.fixture
def storages(client: redis.Redis) -> Iterator[Storages]:
    executions, flows = RedisExecutionStorage(client=client), RedisFlowStorage(client=client)
    for flow in (SUM, WAITS):
        flows.save_flow(flow)
    yield executions, flows
    executions.close()
    flows.close()


@pytest.fixture
def worker(redis_url: str, storages: Storages) -> Iterator[RedisFlowWorker]:
    found = RedisFlowWorker(redis_url, QUEUE, storages[0], storages[1], consumer_group="mine", dlq_key=DEAD)
    thread = threading.Thread(target=found.run)
    thread.start()
    yield found
    found.stop(wait=True)
    thread.join()


class Hook:
    """A place that dead letters are posted to."""

    def __init__(self, server: HTTPServer) -> None:
        self.url, self.letters = f"http://127.0.0.1:{server.server_port}/", list[dict[str, Any]]()


@pytest.fixture
def hook() -> Iterator[Hook]:
    class Heard(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.letters.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    server = HTTPServer(("127.0.0.1", 0), Heard)
    found = Hook(server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def group_names(client: Any) -> list[str]:
    return [group["name"] for group in client.xinfo_groups(QUEUE)]


def status(storages: Storages, execution_id: str) -> str | None:
    state = storages[0].load_execution_state(execution_id)
    return None if state is None else str(state.status)


@pytest.mark.usefixtures("worker")
def test_messages_of_a_named_stream_move_executions_of_the_store(client: redis.Redis, storages: Storages) -> None:
    enqueue_task(client, QUEUE, {"type": "start", "flow_id": "sum", "execution_id": "a", "params": {"x": 1}})
    wait_until(lambda: status(storages, "a") == "completed", "the execution ends")
    enqueue_task(client, QUEUE, {"type": "resume", "resume_type": "strange", "execution_id": "a"})
    wait_until(lambda: client.xlen(DEAD) == 1, "the message is a dead letter")
    assert client.xlen(QUEUE) == 0
    assert group_names(client) == ["mine"]
    assert not client.exists("plaita:flow:queue", "plaita:flow:queue:dlq")


def test_a_worker_in_a_program_has_pages_when_it_is_given_a_port(redis_url: str, storages: Storages) -> None:
    port = free_port()
    found = RedisFlowWorker(redis_url, QUEUE, *storages, metrics_port=port, metrics_host="127.0.0.1")
    thread = threading.Thread(target=found.run)
    thread.start()
    pages: list[str] = []

    def read() -> bool:
        try:
            pages.append(httpx.get(f"http://127.0.0.1:{port}/metrics").text)
        except httpx.ConnectError:
            return False
        return True

    wait_until(read, "it answers")
    found.stop(wait=True)
    thread.join()
    assert f'plaita_queue_max_deliveries{{group="plaita-workers",stream="{QUEUE}"}} 5.0' in pages[0]


def test_a_worker_in_a_program_posts_its_dead_letters(
    client: redis.Redis, redis_url: str, storages: Storages, hook: Hook
) -> None:
    found = RedisFlowWorker(redis_url, QUEUE, *storages, dlq_key=DEAD, alert_webhook=hook.url)
    thread = threading.Thread(target=found.run)
    thread.start()
    enqueue_task(client, QUEUE, {"type": "resume", "resume_type": "strange", "execution_id": "a"})
    wait_until(lambda: hook.letters, "the dead letter is posted")
    found.stop(wait=True)
    thread.join()
    assert [(letter["queue"], letter["dlq_key"]) for letter in hook.letters] == [(QUEUE, DEAD)]


def test_a_message_of_the_family_of_its_stream_is_taken_and_another_one_is_left(
    client: redis.Redis, redis_url: str, storages: Storages
) -> None:
    found = RedisFlowWorker(redis_url, QUEUE, *storages, consumer_group="mine", dlq_key=DEAD)
    thread = threading.Thread(target=found.run)
    thread.start()
    for name, group in (("other", "yours"), ("own", "mine")):
        family = generations({}, QUEUE, group, DEAD).config_family
        task = {"type": "start", "flow_id": "sum", "execution_id": name, "params": {"x": 1}}
        enqueue_task(client, QUEUE, task, config_family=family)
    wait_until(lambda: status(storages, "own") == "completed", "its own message is carried out")
    found.stop(wait=True)
    thread.join()
    assert status(storages, "other") is None
    assert client.xlen(QUEUE) == 1


def test_a_worker_ends_when_it_is_told_to(worker: RedisFlowWorker) -> None:
    wait_until(lambda: worker.instance_id, "it works")
    assert worker.wait_for_idle(timeout=5)
    assert not worker.draining
    worker.request_drain()
    worker.stop(wait=True)
    assert worker.draining
    assert worker.instance_id is None


def test_a_program_resumes_what_it_started_over_redis(storages: Storages) -> None:
    worker = FlowWorker(*storages)
    step = worker.start_flow("waits", {}, execution_id="w")
    data = {"event_data": 5, "subscription_id": step["result"]["subscription_id"]}
    assert worker.resume_flow("waits", "w", "event", data)["result"] == 5
    assert status(storages, "w") == "completed"


def test_everything_that_is_wrong_is_told_at_once(redis_url: str, storages: Storages) -> None:
    with pytest.raises(InputError, match=r"queue_name.*concurrency is 1 or more, not 0; lease_ttl_seconds is 3"):
        RedisFlowWorker(redis_url, " ", storages[0], storages[1], concurrency=0, lease_ttl_seconds=1)


def test_what_another_process_holds_is_not_moved_here(client: redis.Redis, storages: Storages) -> None:
    lease = RedisExecutionLease(client, key_prefix="locks:")
    worker = FlowWorker(storages[0], storages[1], execution_lease=lease)
    worker.start_flow("waits", {}, execution_id="w")
    assert lease.try_acquire("w", "somebody", 60)
    with pytest.raises(ExecutionLeaseError):
        worker.resume_flow("waits", "w", "cancel")
    assert lease.release("w", "somebody")
    assert worker.resume_flow("waits", "w", "cancel")["status"] == "cancelled"
