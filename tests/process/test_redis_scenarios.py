"""Faults on one Redis that need no server to die: doubled messages, a store put back, a process that is deaf."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest
import redis

from plaita import Flow, Node
from plaita.backends.redis import RedisBackend
from plaita.base.clock import SystemClock
from plaita.base.json import decode, encode
from plaita.control.starting import StartOptions, publish, start_flow
from plaita.node.registry import get_default_registry
from plaita.ports.runs import Claim, Keep, Lost, Settled, Stale
from plaita.ports.values import RunId
from plaita.server.worker import Surroundings, Worker, WorkerOptions
from plaita.telemetry import LogTelemetry
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.stage import RUN, Stage, start
from tests.support.fleet import chain_of, lines_of, wait_until
from tests.support.outside import Append
from tests.support.redis_fleet import (
    LEASE_S,
    RedisFleet,
    all_completed,
    doubled,
    effects,
    histories_are_single,
    load_of,
    lost_of,
)
from tests.support.redis_state import Kept, commands_of

DRAIN_S = 1
MANY = int(os.environ.get("PLAITA_DUE", "1000"))
COMMANDS_MAX = 3_000
"""Commands of one claim of 32, each of which costs microseconds: what it may take whatever waits behind."""

pytestmark = pytest.mark.timeout(60 + MANY // 200)


class Gate(Node):
    """Passes when it is opened; remembers under which keys it was asked."""

    node_type: ClassVar[str] = "gate"
    asked: ClassVar[list[str]]
    places: ClassVar[asyncio.Semaphore]

    async def arun(self, execution: Any) -> str:
        self.asked.append(execution.idempotency_key)
        await self.places.acquire()
        return "open"


def gates(count: int) -> Flow:
    get_default_registry().register(Gate)
    Gate.asked, Gate.places = [], asyncio.Semaphore(0)
    names = [f"g{n}" for n in range(count)]
    middle = [{"type": "gate", "id": a, "next": b} for a, b in zip(names, [*names[1:], "e"], strict=True)]
    nodes = [{"type": "start", "id": "s", "next": "g0"}, *middle, {"type": "end", "id": "e"}]
    return Flow.model_validate({"flow_id": "gates", "nodes": nodes})


async def until(store: RedisBackend, check: Any) -> None:
    async with asyncio.timeout(15):
        while not check():
            await store.hint(10)


async def test_one_message_delivered_again_and_again_at_once_is_one_execution(redis_url: str, tmp_path: Path) -> None:
    get_default_registry().register(Append)
    stores = [RedisBackend(redis_url) for _ in range(4)]
    await publish(stores[0], Flow.model_validate({"flow_id": "once", **chain_of(3, tmp_path / "effects")}))
    body = encode({"type": "start", "execution_id": "r", "flow_id": "once", "params": {}})
    stop = asyncio.Event()
    with redis.Redis.from_url(redis_url) as client:
        for _ in range(40):
            client.xadd("plaita:flow:queue", {"payload": body})
        async with asyncio.timeout(15), asyncio.TaskGroup() as group:
            for store in stores:
                group.create_task(Worker(store, WorkerOptions(poll_ms=20)).run(stop))
            while (await stores[0].counts()).by_status["completed"] != 1 or await stores[0].backlog():
                await stores[0].hint(10)
            stop.set()
        pending = client.xpending("plaita:flow:queue", "plaita-workers")
        left = client.xlen("plaita:flow:queue")
    told = Counter(decode(entry.data)["event"] for entry in await stores[0].history(RunId("r")))
    for store in stores:
        await store.close()
    assert (left, pending["pending"]) == (0, 0)
    assert (told["claimed"], told["run_ended"]) == (1, 1)
    assert len(lines_of(tmp_path / "effects")) == 3


async def test_a_holder_that_is_ahead_says_that_the_store_was_put_back_and_the_effect_is_repeated_under_its_key(
    redis_url: str,
) -> None:
    store, telemetry, stop = RedisBackend(redis_url, lease_ms=600), LogTelemetry(), asyncio.Event()
    worker = Worker(store, WorkerOptions(poll_ms=50, renew_ms=150), Surroundings(telemetry=telemetry))
    flow = gates(3)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(stop))
        await start_flow(store, flow, {}, StartOptions(execution_id=RUN))
        await until(store, lambda: len(Gate.asked) == 1)
        with redis.Redis.from_url(redis_url) as client:
            older = Kept.of(client)
            Gate.places.release()
            await until(store, lambda: len(Gate.asked) == 2)
            older.put_back(client)
        Gate.places.release()
        await until(store, lambda: telemetry.numbers()["plaita_store_rewinds"])
        for _ in range(3):
            Gate.places.release()
        await until(store, lambda: telemetry.numbers()["plaita_runs_ended"])
        stop.set()
    claims = [e for entry in await store.history(RUN) if (e := decode(entry.data))["event"] == "claimed"]
    assert await store.audit() == []
    await store.close()
    assert [claim["generation"] for claim in claims] == [1, 2]
    first, second, *again = Gate.asked
    assert again[:2] == [first, second]
    assert len(set(Gate.asked)) == 3


async def test_a_holder_that_only_renews_says_that_the_store_was_put_back(redis_url: str) -> None:
    store, telemetry, stop = RedisBackend(redis_url), LogTelemetry(), asyncio.Event()
    # Without a free place it does not take the execution again.
    worker = Worker(store, WorkerOptions(concurrency=1, renew_ms=50), Surroundings(telemetry=telemetry))
    flow = gates(1)
    await start_flow(store, flow, {}, StartOptions(execution_id=RUN))
    with redis.Redis.from_url(redis_url) as client:
        older = Kept.of(client)
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.run(stop))
            await until(store, lambda: Gate.asked)
            older.put_back(client)
            await until(store, lambda: telemetry.numbers()["plaita_store_rewinds"])
            Gate.places.release()
            await until(store, lambda: telemetry.numbers()["plaita_runs_ended"])
            stop.set()
    numbers = telemetry.numbers()
    await store.close()
    assert (numbers["plaita_store_rewinds"], numbers["plaita_leases_lost"]) == (1, 1)
    assert len(Gate.asked) == 2


async def test_a_holder_whose_execution_was_taken_says_so(redis_url: str) -> None:
    store, telemetry, stop = RedisBackend(redis_url), LogTelemetry(), asyncio.Event()
    worker = Worker(store, WorkerOptions(concurrency=1, renew_ms=50), Surroundings(telemetry=telemetry))
    flow = gates(1)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(stop))
        await start_flow(store, flow, {}, StartOptions(execution_id=RUN))
        await until(store, lambda: Gate.asked)
        taken: list[Claim] = []
        while not taken:
            await store.release(worker.holder)
            taken = await store.claim("other.nonce", 1)
        await until(store, lambda: telemetry.numbers()["plaita_leases_lost"])
        Gate.places.release()
        stop.set()
    numbers = telemetry.numbers()
    assert (numbers["plaita_leases_lost"], numbers.get("plaita_store_rewinds", 0)) == (1, 0)
    assert isinstance(await store.settle(Stage(store, HandClock()).step(taken[0], Keep())), Settled)
    await store.close()


async def test_two_holders_of_one_generation_are_told_apart_after_the_store_was_put_back(redis_url: str) -> None:
    clock = HandClock()
    store = RedisBackend(redis_url, clock)
    stage = Stage(store, clock)
    await store.submit(start())
    with redis.Redis.from_url(redis_url) as client:
        older = Kept.of(client)
        [lost] = await stage.take()
        older.put_back(client)
    [now] = await stage.take()
    assert now.token.generation == lost.token.generation
    assert await stage.settle(lost, Keep()) == Stale(now.token, 0)
    assert await store.renew([(RUN, lost.token)]) == [Lost(0)]
    assert isinstance(await stage.settle(now, Keep()), Settled)
    # The same number again, by the one who lost it: no repetition of what the other one settled.
    assert await stage.settle(lost, Keep()) == Stale(now.token, 1)
    await store.close()


class Stepping(SystemClock):
    """The clock of a store that somebody sets."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


@pytest.mark.parametrize("step_s", [7_200, -7_200])
async def test_a_clock_that_is_set_takes_no_execution_from_a_worker_that_lives(
    redis_url: str, tmp_path: Path, step_s: int
) -> None:
    get_default_registry().register(Append)
    clock, stop = Stepping(), asyncio.Event()
    stores = [RedisBackend(redis_url, clock, lease_ms=int(LEASE_S * 1000)) for _ in range(2)]
    shape = chain_of(10, tmp_path / "effects")
    for node in shape["nodes"][1:-1]:
        node["seconds"] = 0.05
    flow = Flow.model_validate({"flow_id": "load", **shape})
    async with asyncio.TaskGroup() as group:
        for store in stores:
            group.create_task(Worker(store, WorkerOptions(concurrency=4, poll_ms=300, renew_ms=900)).run(stop))
        for _ in range(8):
            await start_flow(stores[0], flow, {}, StartOptions())
        await until(stores[0], lambda: len(effects(tmp_path)) >= 16)
        clock.ahead_ms = step_s * 1000
        await until(stores[0], lambda: len(effects(tmp_path)) >= 80)
        while (await stores[0].counts()).by_status["completed"] < 8:
            await stores[0].hint(10)
        stop.set()
    views, _ = await stores[0].runs()
    assert await stores[0].audit() == []
    for store in stores:
        await store.close()
    assert lost_of(views) == 0
    assert doubled(tmp_path) == []


async def test_a_claim_looks_at_a_few_whatever_has_run_out_or_is_due(redis_url: str) -> None:
    clock = HandClock()
    store = RedisBackend(redis_url, clock)
    stage = Stage(store, clock)
    for first in range(0, MANY, 500):
        await asyncio.gather(*(store.submit(start(f"lost{n}")) for n in range(first, min(first + 500, MANY))))
    while await stage.take(500):
        pass
    await stage.lease_over()
    with redis.Redis.from_url(redis_url) as client:
        before = commands_of(client)
        assert await stage.take(32, alone=False) == []
        assert commands_of(client) - before < COMMANDS_MAX
    later = clock.now_ms() + 1
    for first in range(0, MANY, 500):
        wanted = range(first, min(first + 500, MANY))
        await asyncio.gather(*(store.submit(start(f"late{n}", not_before_ms=later)) for n in wanted))
    clock.advance(1)
    await store.submit(start("urgent", priority=1))
    with redis.Redis.from_url(redis_url) as client:
        for alone, kinds in ((False, {"urgent", "late"}), (True, {"lost"}), (False, {"late"}), (True, {"lost"})):
            before = commands_of(client)
            claims = await stage.take(32, alone=alone)
            assert commands_of(client) - before < COMMANDS_MAX
            assert {claim.header.run_id.rstrip("0123456789") for claim in claims} == kinds
    await store.close()


def test_a_node_that_lets_no_thread_run_past_its_lease_leads_to_no_second_result(
    tmp_path: Path, redis_url: str
) -> None:
    fleet = RedisFleet(tmp_path, url=redis_url, lease_s=LEASE_S)
    fleet.start_workers(2)
    with fleet.runtime() as runtime:
        executions = load_of(runtime, tmp_path, 1, 1, LEASE_S + 0.6, "grip")
        all_completed(runtime, executions)
        histories_are_single(executions)
        assert runtime.ask(lambda store: store.audit()) == []
    fleet.stop()
    assert len({line.key for line in effects(tmp_path)}) == 1


def test_a_worker_that_is_told_to_end_ends_in_time_although_a_node_does_not_hear_it(
    tmp_path: Path, redis_url: str
) -> None:
    fleet = RedisFleet(tmp_path, url=redis_url)
    fleet.variables["PLAITA_WORKER_DRAIN_TIMEOUT"] = str(DRAIN_S)
    [pid] = fleet.start_workers(1)
    with fleet.runtime() as runtime:
        [execution] = load_of(runtime, tmp_path, 1, 2, 600, "deaf_for_long")
        wait_until(lambda: effects(tmp_path), "it has begun")
        os.kill(pid, signal.SIGTERM)
        fleet.processes.pop(pid).wait(DRAIN_S + 10)
        view = runtime.ask(lambda store: store.run(execution.id))
        now_ms = runtime.ask(lambda store: store.now_ms())
    assert view is not None
    assert view.status == "running"
    assert view.due_ms is not None
    assert view.due_ms <= now_ms
    assert len(effects(tmp_path)) == 1
