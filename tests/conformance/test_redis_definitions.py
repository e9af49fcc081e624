"""Definitions and kinds on Redis: when they go, what keeps them, and what was written without counting."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest_asyncio
import redis

from plaita.backends.limits import SPARED_MS
from plaita.backends.redis import RedisBackend
from plaita.base.duration import DAY_MS
from plaita.ports.runs import Deleted, End, Park, Spawn
from plaita.ports.values import RunId
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.definitions import DOCUMENT, OTHER, OURS, of_other
from plaita.testing.conformance.stage import RUN, Stage, hand, start

KINDS, COUNTED, USED, OUTBOX = "plaita:kinds", "plaita:kinds.counted", "plaita:closures.used", "plaita:outbox"
UNCOUNTED = "0123456789abcdef"
"""A name as those give that count nothing."""
SCANS = 2_500
"""More than is looked at in one portion."""


@pytest_asyncio.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    clock = HandClock()
    store = RedisBackend(redis_url, clock)
    yield Stage(store, clock)
    await store.close()


async def prune_later(stage: Stage) -> None:
    stage.clock.advance(DAY_MS)
    await stage.backend.prune(stage.clock.now_ms())


def counts(client: redis.Redis) -> list[int]:
    return sorted(int(count) for count in client.hvals(COUNTED))


def kinds(client: redis.Redis) -> dict[str, str]:
    """What there is of kinds, by their names."""
    return {str(name): str(said) for name, said in client.hgetall(KINDS).items()}


def kind_of(client: redis.Redis, flow_id: str) -> str:
    """The name of the only kind of a flow."""
    [name] = [name for name, said in kinds(client).items() if json.loads(said)[0] == flow_id]
    return name


async def test_a_kind_is_counted_by_its_runs_and_goes_with_the_last(stage: Stage, client: redis.Redis) -> None:
    for run_id in ("a", "b", "c"):
        await stage.settle(await stage.hold(run_id), End("completed"))
    await stage.hold("d", flow_version="2")
    assert counts(client) == [1, 3]
    assert await stage.backend.delete(RunId("a")) == Deleted(RunId("a"))
    assert counts(client) == [1, 2]
    await stage.backend.cancel(RunId("d"))
    await prune_later(stage)
    assert await stage.backend.audit() == []
    assert (await stage.status("d"), counts(client), client.hlen(KINDS)) == ("running", [1], 1)
    await stage.backend.cancel(RunId("d"))
    await prune_later(stage)
    assert not client.exists(KINDS, COUNTED)


async def test_a_start_that_is_sent_twice_is_counted_once(stage: Stage, client: redis.Redis) -> None:
    for _ in range(2):
        await stage.backend.submit(start())
    await stage.backend.submit(start(digest="another"))
    assert counts(client) == [1]


async def test_a_promised_child_is_counted_until_it_is_there(stage: Stage, client: redis.Redis) -> None:
    spawns = (Spawn(of_other("free"), None),)
    await stage.settle(await stage.hold(), End("completed"), spawns=spawns)
    await stage.backend.delete(RUN)
    assert counts(client) == [1]
    assert await stage.backend.audit() == []
    await stage.take()
    assert counts(client) == [1]
    assert await stage.backend.audit() == []


async def test_a_child_that_was_promised_without_counting_is_started(stage: Stage, client: redis.Redis) -> None:
    await stage.settle(await stage.hold(), End("completed"), spawns=(Spawn(start("free"), None),))
    [entry] = client.lrange(OUTBOX, 0, -1)
    head, _, data = str(entry).partition("\n")
    client.lset(OUTBOX, 0, f"{json.dumps(json.loads(head)[:8])}\n{data}")
    client.hincrby(COUNTED, client.hkeys(COUNTED)[0], -1)
    assert await stage.backend.audit() == []
    [child] = await stage.take(only=RunId("free"))
    assert child.header.run_id == "free"
    assert counts(client) == [2]
    assert await stage.backend.audit() == []


async def test_a_run_whose_kind_nobody_counts_keeps_it_and_its_definition(stage: Stage, client: redis.Redis) -> None:
    await stage.backend.put_closure(OURS, DOCUMENT)
    await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
    [(name, said)] = kinds(client).items()
    client.hset("plaita:run:r", "h", str(client.hget("plaita:run:r", "h")).replace(name, UNCOUNTED))
    client.hset(KINDS, UNCOUNTED, said)
    client.hdel(KINDS, name)
    client.delete(COUNTED)
    await stage.settle(await stage.hold("other"), End("completed"))
    await prune_later(stage)
    assert ([*kinds(client)], await stage.backend.closure(OURS)) == ([UNCOUNTED], DOCUMENT)
    assert await stage.backend.audit() == []
    await stage.backend.cancel(RUN)
    await prune_later(stage)
    assert ([*kinds(client)], await stage.backend.closure(OURS)) == ([UNCOUNTED], DOCUMENT)
    assert await stage.backend.audit() == []


async def test_a_definition_of_which_no_use_was_noted_stays_until_it_is_stored_again(
    stage: Stage, client: redis.Redis
) -> None:
    client.set(f"plaita:closure:{OURS}", DOCUMENT)
    await prune_later(stage)
    assert await stage.backend.closure(OURS) == DOCUMENT
    await stage.backend.put_closure(OURS, b"another text under its hash")
    assert await stage.backend.closure(OURS) == DOCUMENT
    await prune_later(stage)
    assert await stage.backend.closure(OURS) is None


async def test_a_definition_that_is_there_is_not_sent_again(stage: Stage, client: redis.Redis) -> None:
    def received() -> int:
        return int(client.info("stats")["total_net_input_bytes"])

    long = DOCUMENT + b" " * 100_000
    await stage.backend.submit(start("first"), long)
    before = received()
    await stage.backend.submit(start("second"), long)
    assert 0 < received() - before < len(long)


async def test_what_is_used_while_others_look_who_has_it_is_not_removed(stage: Stage, client: redis.Redis) -> None:
    store = stage.backend
    assert isinstance(store, RedisBackend)
    chosen = [OURS, OTHER, "published", "nobody's"]
    for closure in chosen:
        await store.put_closure(closure, DOCUMENT)
    stage.clock.advance(DAY_MS)
    await store.put_closure(OURS, DOCUMENT)
    await store.submit(of_other("r"))
    await store.publish_flow("f", "1", "published")
    older = stage.clock.now_ms() - SPARED_MS
    assert await store._talk.run("forget_closures", older=older, closures=chosen) == 1
    assert set(client.zrange(USED, 0, -1)) == set(chosen[:3])
    assert [await store.closure(closure) for closure in chosen] == [*[DOCUMENT] * 3, None]


async def test_however_many_kinds_and_definitions_there_are_each_is_looked_at(
    stage: Stage, client: redis.Redis
) -> None:
    long_ago = stage.clock.now_ms() - DAY_MS
    closures = [f"c{number}" for number in range(SCANS)]
    client.mset({f"plaita:closure:{closure}": DOCUMENT for closure in closures})
    client.zadd(USED, dict.fromkeys(closures, long_ago))
    kept = closures[1::2]
    client.hset(KINDS, mapping={f"kind of {c}": json.dumps(["flow", c, "", "", {}]) for c in kept})
    await stage.backend.prune(stage.clock.now_ms())
    assert sorted(client.zrange(USED, 0, -1)) == sorted(kept)
    assert len(list(client.scan_iter("plaita:closure:*", count=1_000))) == len(kept)


async def test_a_run_that_goes_while_it_is_looked_at_is_not_there(stage: Stage, client: redis.Redis) -> None:
    await stage.hold()
    await stage.backend.submit(replace(start("other"), flow_id="another"))
    client.hdel(KINDS, kind_of(client, "flow"))
    assert await stage.backend.run(RUN) is None
    assert [view.run_id for view in (await stage.backend.runs())[0]] == ["other"]


async def test_the_audit_finds_kinds_that_are_gone_and_counts_that_are_wrong(stage: Stage, client: redis.Redis) -> None:
    await stage.backend.submit(start())
    await stage.backend.submit(replace(start("other"), flow_id="another"))
    gone, wrong = kind_of(client, "flow"), kind_of(client, "another")
    client.hdel(KINDS, gone)
    client.hset(COUNTED, wrong, 3)
    assert await stage.backend.audit() == [
        f"run r: what it was started with is gone, kind {gone}",
        f"kind {wrong}: 3 are counted, 1 have it",
    ]
