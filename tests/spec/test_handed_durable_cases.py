"""Cases from reports about workers, queues and events, on SQLite and on Redis: real workers in this process."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from plaita.base.json import encode
from plaita.control import acting, looking
from plaita.control.starting import StartOptions, publish, start_published
from plaita.core.executor import FlowExecution
from plaita.core.flow import Flow
from plaita.ports.values import RunId
from plaita.server.worker import WorkerOptions
from tests.spec.handed import read_case
from tests.spec.handed_shop import PATIENCE_S, Counter, Shop, flow_of
from tests.support.fleet import Fleet, wait_until
from tests.support.http_stub import JSON_TYPE, Reply, Stub

pytestmark = pytest.mark.timeout(60)


async def test_085_two_starts_under_one_key_are_one_execution(shop: Shop, stub: Stub, counter: Counter) -> None:
    given = read_case("085")["given"]
    await publish(shop.store, flow_of(given, stub))
    for i in range(7):
        for run_id in (f"u{i}", f"v{i}"):
            await shop.send(run_id, type="start", flow_id="three", execution_id=run_id, dedup_key=f"D{i}")

    async def all_ended() -> bool:
        return [await shop.status(f"v{i}") for i in range(7)] == ["completed"] * 7

    await shop.work(all_ended, workers=2)
    assert counter.counts == {"p1": 7, "p2": 7, "fin": 7}
    assert [(await looking.inspect(shop.store, f"v{i}"))["execution_id"] for i in range(7)] == [
        f"u{i}" for i in range(7)
    ]


async def test_086_a_transient_failure_goes_on_from_the_checkpoint(shop: Shop, stub: Stub, counter: Counter) -> None:
    wanted = read_case("086")
    counter.drops = {"fin": 1}
    await publish(shop.store, flow_of(wanted["given"], stub))
    await shop.send("m", type="start", flow_id="three", execution_id="r1")

    async def ended() -> bool:
        return await shop.status("r1") in ("completed", "error")

    await shop.work(ended)
    assert await shop.status("r1") == wanted["expect"]["state"]
    assert counter.counts == wanted["expect"]["counts"]
    history = await shop.store.history(RunId("r1"))
    failed = [e for e in history if b'"node_error"' in e.data]
    again = [e for e in history if b'"node_start"' in e.data and b'"attempt":2' in e.data.replace(b" ", b"")]
    assert again[0].at_ms - failed[0].at_ms >= 1_000


async def test_087_a_permanent_failure_ends_in_an_error_that_counts(shop: Shop, stub: Stub, counter: Counter) -> None:
    wanted = read_case("087")
    counter.drops = {"fin": 1_000}
    shop.options = WorkerOptions(poll_ms=20, attempts_max=3)
    await publish(shop.store, flow_of(wanted["given"], stub))
    await shop.send("m", type="start", flow_id="three", execution_id="r2")

    async def ended() -> bool:
        return await shop.status("r2") in ("completed", "error")

    await shop.work(ended)
    shape = await looking.inspect(shop.store, "r2")
    assert shape["status"] == wanted["expect"]["state"]
    assert counter.counts == wanted["expect"]["counts"]
    assert "'fin'" in shape["error"]["message"]
    retries = [e for e in await shop.store.history(RunId("r2")) if b'"retry"' in e.data]
    assert len(retries) == wanted["expect"]["counts"]["fin"] - 1
    assert await shop.store.backlog() == 0


async def test_094_a_value_that_can_be_stored_or_fails_at_once(shop: Shop, stub: Stub, counter: Counter) -> None:
    wanted = read_case("094")
    await publish(shop.store, flow_of(wanted["given"], stub))
    await shop.send("m", type="start", flow_id="keys", execution_id="k1", params=wanted["given"]["input"])

    async def ended() -> bool:
        return await shop.status("k1") in ("completed", "error")

    await shop.work(ended)
    assert await shop.status("k1") == "completed"
    assert counter.counts == wanted["expect"]["counts"]
    assert await shop.store.backlog() == 0
    assert (await shop.store.dead_letters())[0] == []


async def test_098_a_start_of_an_unknown_flow_can_be_looked_up(shop: Shop) -> None:
    wanted = read_case("098")
    await shop.send("m1", **wanted["given"]["message"])

    async def ended() -> bool:
        return await shop.status("m1") != "absent"

    await shop.work(ended)
    shape = await looking.inspect(shop.store, "m1")
    assert shape["status"] == wanted["expect"]["state"]
    assert wanted["expect"]["must_name"] in shape["error"]["message"]


async def waiting(shop: Shop, stub: Stub, given: dict[str, Any], run_id: str) -> str:
    """Start the flow of an event case and come to its wait; the wait's id."""
    await publish(shop.store, flow_of(given, stub))
    await start_published(shop.store, "ev", {}, StartOptions(execution_id=run_id))

    async def suspended() -> bool:
        return await shop.status(run_id) == "suspended"

    await shop.work(suspended)
    [wait] = await shop.store.waits(RunId(run_id))
    return wait.wait_id


async def ends_well(shop: Shop, run_id: str) -> None:
    async def ended() -> bool:
        return await shop.status(run_id) in ("completed", "error")

    await shop.work(ended)
    assert await shop.status(run_id) == "completed"


async def accepted(shop: Shop) -> None:
    """A worker looks at the inbox until it is empty."""

    async def empty() -> bool:
        return await shop.store.backlog() == 0

    await shop.work(empty)


async def test_106_a_resume_of_another_wait_changes_nothing(shop: Shop, stub: Stub) -> None:
    wait_id = await waiting(shop, stub, read_case("106")["given"], "v2")
    await shop.send("wrong", type="resume", execution_id="v2", wait_id="wrong", data={"n": 1})
    await accepted(shop)
    assert await shop.status("v2") == "suspended"
    await shop.send("right", type="resume", execution_id="v2", wait_id=wait_id, data={"n": 2})
    await accepted(shop)
    await ends_well(shop, "v2")
    assert (await looking.inspect(shop.store, "v2"))["output"] == {"n": 2}


async def test_107_continue_skips_no_wait_and_ends_nothing(shop: Shop, stub: Stub) -> None:
    await waiting(shop, stub, read_case("107")["given"], "v3")
    await shop.send("go", type="resume", resume_type="continue", execution_id="v3")
    await accepted(shop)
    assert await shop.status("v3") == "suspended"
    assert (await shop.store.dead_letters())[0] == []
    await acting.publish_event(shop.store, "go", {"n": 3}, None)
    await ends_well(shop, "v3")


async def test_108_an_event_is_not_lost_between_the_wait_and_its_answer(shop: Shop, stub: Stub) -> None:
    given = read_case("108")["given"]
    await acting.publish_event(shop.store, "go", {"early": True}, "v4")
    await waiting(shop, stub, given, "v4")
    assert await shop.status("v4") == "suspended", "an uncorrelated wait sees events since it waits, as documented"
    await acting.publish_event(shop.store, "go", {"n": 4}, None)
    await ends_well(shop, "v4")
    correlated = json.loads(json.dumps(given))
    correlated["flow"]["nodes"][1]["correlation"] = "$EXECUTION_ID"
    await acting.publish_event(shop.store, "go", {"early": True}, "v5")
    await publish(shop.store, flow_of(correlated, stub))
    await start_published(shop.store, "ev", {}, StartOptions(execution_id="v5"))
    await acting.publish_event(shop.store, "go", {"between": True}, "v5")
    await ends_well(shop, "v5")
    assert (await looking.inspect(shop.store, "v5"))["output"] == {"between": True}


def test_115_a_delay_takes_digits() -> None:
    wanted = read_case("115")
    flow = Flow.model_validate(wanted["given"]["flow"])
    step = FlowExecution().run_distributed(flow, wanted["given"]["input"])
    step = FlowExecution().run_distributed(flow, saved_context=step["context"])
    assert step["result"]["service_config"]["delay_ms"] == wanted["expect"]["any_of"][0]["delay_ms"]


async def test_116_a_delay_that_makes_no_sense_fails_by_name(shop: Shop) -> None:
    wanted = read_case("116")["given"]
    await publish(shop.store, Flow.model_validate(wanted["flow"]))
    for i, value in enumerate(wanted["inputs"]):
        await start_published(shop.store, "dl", value, StartOptions(execution_id=f"d{i}"))

    async def ended() -> bool:
        return [await shop.status(f"d{i}") for i in range(3)] == ["error", "error", "completed"]

    await shop.work(ended)
    for i in range(2):
        assert "delay_seconds" in (await looking.inspect(shop.store, f"d{i}"))["error"]["message"]


async def test_141_a_lone_surrogate_wedges_nothing(shop: Shop, stub: Stub, counter: Counter) -> None:
    wanted = read_case("141")
    counter.replies = {"sur": Reply(200, JSON_TYPE, b'{"v": "\\ud800"}')}
    await publish(shop.store, flow_of(wanted["given"], stub))
    await shop.send("m", type="start", flow_id="sur", execution_id="k4")

    async def ended() -> bool:
        return await shop.status("k4") in ("completed", "error")

    await shop.work(ended)
    encode(await looking.inspect(shop.store, "k4"))
    encode((await looking.list_executions(shop.store))["items"])


def test_090_a_worker_that_was_stopped_longer_than_its_lease_does_no_harm(
    tmp_path: Path, stub: Stub, counter: Counter
) -> None:
    wanted = read_case("090")
    fleet = Fleet(tmp_path, ("--lease-ttl-seconds", "3"))
    flow = flow_of(wanted["given"], stub)
    for node in flow.nodes:
        if node.id == "p2":
            counter.replies["p2"] = Reply(hang=True)
    with fleet.runtime() as runtime:
        runtime.publish(flow)
        run = runtime.start("three", {}, execution_id="r")
        first = fleet.start_worker()
        wait_until(lambda: counter.counts.get("p2"), "the first worker calls p2")
        fleet.processes[first].send_signal(signal.SIGSTOP)
        counter.replies.clear()
        fleet.start_worker()
        try:
            wait_until(lambda: run.inspect()["status"] == "completed", "the second worker finishes", PATIENCE_S)
            before = run.inspect(), run.history()
            fleet.processes[first].send_signal(signal.SIGCONT)
            wait_until(lambda: len(runtime.executions()) == 1, "the store answers")
            other = runtime.start("three", {}, execution_id="other")
            wait_until(lambda: other.inspect()["status"] == "completed", "the workers go on", PATIENCE_S)
            assert (run.inspect(), run.history()) == before
        finally:
            fleet.processes[first].send_signal(signal.SIGCONT)
            fleet.stop()
    assert counter.counts["fin"] == 2
    assert before[0]["status"] == wanted["expect"]["state"]
