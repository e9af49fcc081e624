"""Cases from reports about streams, groups and processes that die: workers on Redis, and documented producers."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from plaita import Flow
from plaita.backends.redis import RedisBackend
from plaita.base.clock import SystemClock
from plaita.base.errors import ResumeRefused
from plaita.control import acting
from plaita.control.starting import StartOptions, publish, start_published
from plaita.ports.values import RunId
from plaita.server.task_queue import DEFAULT_CONSUMER_GROUP, enqueue_task
from tests.spec.handed import read_case
from tests.spec.handed_shop import PATIENCE_S, Counter, Shop, flow_of
from tests.support.fleet import wait_until
from tests.support.http_stub import Reply, Stub
from tests.support.redis_fleet import RedisFleet

pytestmark = pytest.mark.timeout(60)

STREAM, DEAD = "plaita:flow:queue", "plaita:flow:queue:dlq"
Client = Any


@pytest.fixture
def client(redis_url: str) -> Iterator[Client]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as found:
        yield found


@pytest.fixture
async def fleet(redis_url: str) -> AsyncIterator[Shop]:
    shop = Shop(RedisBackend(redis_url))
    yield shop
    assert await shop.store.audit() == []
    await shop.store.close()


def letters(client: Client) -> list[dict[str, Any]]:
    """What the documented stream of dead letters holds."""
    return [json.loads(fields["payload"]) for _, fields in client.xrange(DEAD)]


async def works_until(shop: Shop, run_id: str, status: str) -> None:
    async def reached() -> bool:
        return await shop.status(run_id) == status

    await shop.work(reached)


async def accepts_everything(shop: Shop, client: Client) -> None:
    async def empty() -> bool:
        return int(client.xlen(STREAM)) == 0

    await shop.work(empty)


def test_082_a_run_whose_worker_died_is_driven_by_the_next(
    tmp_path: Path, redis_url: str, stub: Stub, counter: Counter
) -> None:
    wanted = read_case("082")
    counter.replies["p2"] = Reply(hang=True)
    fleet = RedisFleet(tmp_path, url=redis_url, lease_s=wanted["given"]["settings"]["lease_ttl_s"])
    with fleet.runtime() as runtime, redis.Redis.from_url(redis_url) as client:
        runtime.publish(flow_of(wanted["given"], stub))
        [first] = fleet.start_workers(1)
        enqueue_task(client, STREAM, {"type": "start", "flow_id": "three", "execution_id": "r"})
        wait_until(lambda: counter.counts.get("p2"), "the first worker calls p2")
        fleet.processes[first].send_signal(signal.SIGKILL)
        counter.replies.clear()
        fleet.start_workers(1)
        run = wait_until(lambda: runtime.execution("r"), "the execution is there")
        wait_until(lambda: run.inspect()["status"] == "completed", "the second worker finishes", PATIENCE_S)
        fleet.stop()
    assert counter.counts == {"p1": 1, "p2": 2, "fin": 1}


async def test_092_a_group_and_a_stream_that_are_gone_are_made_again(
    fleet: Shop, client: Client, stub: Stub, counter: Counter
) -> None:
    await publish(fleet.store, flow_of(read_case("092")["given"], stub))
    enqueue_task(client, STREAM, {"type": "start", "flow_id": "three", "execution_id": "g0"})
    await works_until(fleet, "g0", "completed")
    client.xgroup_destroy(STREAM, DEFAULT_CONSUMER_GROUP)
    enqueue_task(client, STREAM, {"type": "start", "flow_id": "three", "execution_id": "g1"})
    await works_until(fleet, "g1", "completed")
    client.delete(STREAM)
    enqueue_task(client, STREAM, {"type": "start", "flow_id": "three", "execution_id": "g2"})
    await works_until(fleet, "g2", "completed")
    assert counter.counts == {"p1": 3, "p2": 3, "fin": 3}


async def test_096_what_is_no_object_is_one_dead_letter_each(fleet: Shop, client: Client) -> None:
    given = read_case("096")["given"]
    payloads = [given["message_fields"]["payload"], *given["also"]]
    for payload in payloads:
        client.xadd(STREAM, {"payload": payload})
    await accepts_everything(fleet, client)
    found = letters(client)
    assert [letter["payload"] for letter in found] == payloads
    assert all(letter["reason"].startswith("invalid_payload: ") for letter in found)


async def test_100_a_version_that_is_no_number_counts_as_the_first(fleet: Shop, client: Client, stub: Stub) -> None:
    await publish(fleet.store, flow_of(read_case("092")["given"], stub))
    start = {"type": "start", "flow_id": "three", "execution_id": "sv2"}
    client.xadd(
        STREAM,
        {"payload": json.dumps(start), "schema_version": read_case("100")["given"]["message_fields"]["schema_version"]},
    )
    await works_until(fleet, "sv2", "completed")
    assert letters(client) == []


async def test_102_a_start_from_years_ago_runs_nothing(
    fleet: Shop, client: Client, stub: Stub, counter: Counter
) -> None:
    await publish(fleet.store, flow_of(read_case("092")["given"], stub))
    enqueue_task(client, STREAM, read_case("102")["given"]["message"])
    await accepts_everything(fleet, client)
    assert await fleet.status("o1") == "absent"
    assert counter.counts == {}
    [letter] = letters(client)
    assert letter["reason"].startswith("too_old: sent ")


async def test_103_a_start_from_the_future_is_as_old_as_its_entry(fleet: Shop, client: Client, stub: Stub) -> None:
    await publish(fleet.store, flow_of(read_case("092")["given"], stub))
    enqueue_task(client, STREAM, read_case("103")["given"]["message"])
    await works_until(fleet, "o3", "completed")
    view = await fleet.store.run(RunId("o3"))
    assert view is not None
    assert view.submitted_ms <= await fleet.store.now_ms()


async def test_113_a_word_that_is_no_decision_decides_nothing(shop: Shop) -> None:
    asked = read_case("113")["given"]["approval"]
    approval = {
        "type": "approval",
        "id": "a",
        "approval_title": "May it?",
        "approvers": asked["approvers"],
        "next": "e",
    }
    approval["approval_strategy"] = asked["strategy"]
    nodes = [{"type": "start", "id": "s", "next": "a"}, approval, {"type": "end", "id": "e"}]
    await publish(shop.store, Flow.model_validate({"flow_id": "asks", "nodes": nodes}))
    await start_published(shop.store, "asks", {}, StartOptions(execution_id="w"))
    await works_until(shop, "w", "suspended")
    [wait] = await shop.store.waits(RunId("w"))
    strange = {"final_decision": "Approve"}
    with pytest.raises(ResumeRefused, match="one of approved, rejected"):
        await acting.resume(shop.store, "w", "", strange, "a")
    await shop.send("m", type="resume", execution_id="w", wait_id=wait.wait_id, data=strange)

    async def refused() -> bool:
        return (await shop.store.dead_letters())[0] != []

    await shop.work(refused)
    [letter] = (await shop.store.dead_letters())[0]
    assert (letter.reason, await shop.status("w")) == ("invalid_payload", "suspended")
    assert wait.task_id is not None
    await acting.decide(shop.store, wait.task_id, acting.Verdict("a", approved=True), SystemClock())
    await works_until(shop, "w", "completed")
