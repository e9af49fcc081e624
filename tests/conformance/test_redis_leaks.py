"""What is left on a server when every execution is gone: what stays for a time, and a few keys that do not grow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import cast

import pytest
import pytest_asyncio
import redis

from plaita import Flow
from plaita.backends.limits import SPARED_MS
from plaita.backends.redis import RedisBackend
from plaita.backends.redis.mistyped import mistyped
from plaita.base.duration import DAY_MS
from plaita.base.json import encode
from plaita.control.starting import StartOptions, start_flow
from plaita.ports.inbox import Replaying
from plaita.ports.processes import Facts, Process
from plaita.ports.runs import Adoption, Arm, Claim, Closing, End, HandBack, Next, Park, Settled, Spawn
from plaita.ports.values import RunId, WaitId
from plaita.server.worker import Worker, WorkerOptions
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.desk import ask, vote
from plaita.testing.conformance.stage import Stage, hand, listen, start
from tests.support.redis_state import keys_of

CAP = 3
STAYS = {
    "plaita:counters": "numbers of the store and what was let through",
    "plaita:pulse": "when the store was asked last",
    "plaita:queues": "names of queues that were used: looked through when the clock goes back",
    "plaita:queue:default:priorities": "priorities that were used in a queue: claims look at each",
    "plaita:promotions": "for each tenant with a cap, how many were let in: every few go to the oldest start",
    "plaita:flow:queue": "the stream of producers, empty, with the group that reads it",
    "plaita:flow:queue:dlq": "the stream of dead letters, empty",
    "plaita:flows": "published flows stay until somebody takes them out",
    "plaita:flowversions:flow": "as above: versions of a flow",
    "plaita:flowversion:4:flow:1": "as above: one version",
    "plaita:closure:closure": "as above: its definition",
}
"""Keys without an end that do not grow with the executions."""
GROWS = {"plaita:dlq:replay:audit": "what was done with dead letters is kept for ever"}


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as found:
        yield found


@pytest_asyncio.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    clock = HandClock()
    store = RedisBackend(redis_url, clock, cap=CAP)
    yield Stage(store, clock)
    await store.close()


async def settle(stage: Stage, claim: Claim, following: Next, **more: object) -> None:
    assert isinstance(await stage.settle(claim, following, **more), Settled)


async def end(stage: Stage, run_id: str) -> None:
    """One that is due reads what it has and goes to its end."""
    [claim] = await stage.take(only=RunId(run_id))
    closes = tuple(
        Closing(mail.wait_id, "read") if mail.kind == "wake" else Closing(mail.wait_id, "event", mail.event)
        for mail in claim.mailbox
    )
    ack = max((mail.number for mail in claim.mailbox), default=0)
    await settle(stage, claim, End("completed", b"1"), closes=closes, ack=ack)


async def simple(stage: Stage, name: str) -> None:
    claim = await stage.hold(f"{name}1", tags=("t", "u"), business_key=f"{name}-key", tenant="acme", priority=3)
    claim = await stage.keep(claim, delta={"k": b"x" * 1000})
    await settle(stage, claim, End("completed", b"1"))
    await settle(stage, await stage.hold(f"{name}2"), End("error", error=b'{"kind":"node_error","code":1}'))
    await settle(stage, await stage.hold(f"{name}3"), HandBack())
    await stage.backend.cancel(RunId(f"{name}3"))
    await stage.backend.submit(start(f"{name}4", not_before_ms=stage.clock.now_ms() + DAY_MS, queue="default"))
    await stage.backend.cancel(RunId(f"{name}4"))
    await settle(stage, await stage.hold(f"{name}5"), End("error", error=b"{}"))
    await stage.backend.reopen(RunId(f"{name}5"))
    await end(stage, f"{name}5")


async def lost(stage: Stage, name: str) -> None:
    await stage.hold(name)
    for _ in range(6):
        await stage.lease_over()
        await stage.take(only=RunId(name))
    assert await stage.status(name) == "error"


async def waiting(stage: Stage, name: str) -> None:
    for number in range(3):
        run_id = f"{name}{number}"
        arms = (ask("ann", "bob"), listen(WaitId("e"), key=name), listen(WaitId("a"), key=None), hand(WaitId("h")))
        await settle(stage, await stage.hold(run_id), Park(stage.clock.now_ms() + DAY_MS), arms=arms)
    tasks, _ = await stage.backend.inbox()
    await stage.backend.decide(tasks[0].task_id, 0, vote("ann", missing=1))
    await stage.backend.decide(tasks[0].task_id, 1, vote("bob", outcome="approved"))
    await stage.backend.publish(f"{name}-event", "pay", name, b"{}")
    await stage.backend.publish(f"{name}-nobody", "none", None, b"{}")
    await end(stage, f"{name}0")
    await stage.backend.cancel(RunId(f"{name}1"))
    await end(stage, f"{name}2")
    claim = await stage.hold(f"{name}3")
    await stage.keep(claim, listen(by_filter=True, key=None))
    await stage.backend.publish(f"{name}-candidate", "pay", None, b"{}")
    await stage.lease_over()
    await end(stage, f"{name}3")


async def children(stage: Stage, name: str) -> None:
    parent = await stage.hold(name)
    spawns = tuple(Spawn(start(f"{name}.c{n}"), WaitId(f"c{n}")) for n in range(2))
    arms = tuple(Arm(WaitId(f"c{n}"), "child", "node", "node") for n in range(2))
    await settle(stage, parent, Park(None), arms=arms, spawns=(*spawns, Spawn(start(f"{name}.detached"), None)))
    await end(stage, f"{name}.c0")
    await end(stage, f"{name}.detached")
    await stage.backend.claim("pump.nonce", 1, queues=("nobody",))
    await end(stage, name)
    await stage.backend.claim("pump.nonce", 1, queues=("nobody",))
    await stage.backend.cancel(RunId(f"{name}.c1"))


async def messages(stage: Stage, name: str) -> None:
    await stage.backend.publish_flow("flow", "1", "closure")
    for number in range(3):
        body = {"type": "start", "flow_id": "flow", "params": {}, "execution_id": f"{name}{number}", "dedup_key": name}
        await stage.backend.offer(f"{name}-{number}", encode(body))
    await stage.backend.offer(f"{name}-bad", b"[")
    await stage.backend.offer(f"{name}-none", encode({"type": "cancel", "execution_id": "nobody"}))
    await stage.backend.offer(f"{name}-event", encode({"type": "event", "event_type": "pay", "key": "k", "data": 1}))
    await stage.backend.accept(20)
    letters, _ = await stage.backend.dead_letters()
    await stage.backend.replay(Replaying(letters[-1].letter_id, "ann", tenant="acme", force=True))
    await stage.backend.discard(letters[0].letter_id, "ann")
    await stage.backend.accept(20)
    [run] = [view for view in (await stage.backend.runs(status="queued"))[0] if view.flow_id == "flow"]
    await end(stage, run.run_id)


async def adopted(stage: Stage, name: str) -> None:
    await stage.backend.adopt(start(f"{name}0"), Adoption({"h": b"[1]"}, End("completed", output=b"2")))
    await stage.backend.adopt(start(f"{name}1"), Adoption({"h": b"[1]"}, Park(None), (hand(),)))
    await stage.backend.cancel(RunId(f"{name}1"))


LOADS = {
    "simple": simple,
    "lost": lost,
    "waiting": waiting,
    "children": children,
    "messages": messages,
    "adopt": adopted,
}


async def gone(stage: Stage, how: str) -> None:
    """Every execution there is ended, and is removed; events and dead letters go with their age."""
    views, _ = await stage.backend.runs(limit=1000)
    assert {view.status for view in views} <= {"completed", "error", "cancelled"}
    for view in views if how == "delete" else ():
        await stage.backend.delete(view.run_id)
    await stage.pass_time(1_000)
    await stage.backend.prune(stage.clock.now_ms())
    assert (await stage.backend.runs())[0] == []
    assert await stage.backend.audit() == []


def kept(client: redis.Redis) -> dict[str, int]:
    """Keys without an end, and how much is in each."""
    lasting = [key for key, ttl in keys_of(client).items() if ttl == -1]
    sizes = {"hash": client.hlen, "set": client.scard, "zset": client.zcard, "stream": client.xlen}
    kinds = {key: cast(bytes, client.type(key)).decode() for key in lasting}
    return {key: sizes[kind](key) if kind in sizes else 1 for key, kind in kinds.items()}


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("how", ["delete", "prune"])
async def test_of_executions_that_are_gone_nothing_stays_for_ever(
    stage: Stage, client: redis.Redis, load: str, how: str
) -> None:
    left = []
    for name in ("first", "second"):
        await stage.backend.announce(Process("h", 1, ("default",), None, (), 0, Facts(instance="i")))
        await LOADS[load](stage, name)
        assert [found async for found in mistyped(cast(RedisBackend, stage.backend)._talk)] == []
        await stage.backend.withdraw("h")
        await gone(stage, how)
        left.append({key: size for key, size in kept(client).items() if key not in GROWS})
    assert left[0].keys() <= STAYS.keys()
    assert left[1] == left[0]


FLOW = {
    "flow_id": "all",
    "nodes": [
        {"type": "start", "id": "s", "next": "p"},
        {"type": "parallel", "id": "p", "next": "d", "branches": [
            {"name": "ask", "childFlow": {"nodes": [
                {"type": "start", "id": "s", "next": "w"},
                {"type": "approval", "id": "w", "approvalTitle": "May I?", "approvers": ["ann"], "next": "e"},
                {"type": "end", "id": "e"},
            ]}},
            {"name": "hear", "childFlow": {"nodes": [
                {"type": "start", "id": "s", "next": "w"},
                {"type": "event", "id": "w", "event_type": "go", "next": "e"},
                {"type": "end", "id": "e"},
            ]}},
        ]},
        {"type": "delay", "id": "d", "delay_seconds": 1, "next": "e"},
        {"type": "end", "id": "e"},
    ],
}  # fmt: skip


async def test_of_a_worker_that_left_and_what_it_moved_nothing_stays_for_ever(
    redis_url: str, client: redis.Redis
) -> None:
    store, stop = RedisBackend(redis_url), asyncio.Event()
    worker = Worker(store, WorkerOptions(facts=Facts(instance="i"), poll_ms=20))
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(worker.run(stop))
        for _ in range(3):
            await start_flow(store, Flow.model_validate(FLOW), {}, StartOptions())
        while len((await store.inbox())[0]) < 3:
            await store.hint(10)
        await store.publish("go1", "go", None, b"{}")
        tasks, _ = await store.inbox()
        for task in tasks[:2]:
            await store.decide(task.task_id, 0, vote("ann", outcome="approved"))
        await store.cancel(tasks[2].run_id)
        while (await store.counts()).by_status["completed"] < 2:
            await store.hint(10)
        stop.set()
    await store.prune(await store.now_ms() + SPARED_MS + 1)
    await store.close()
    assert kept(client).keys() <= STAYS.keys()
