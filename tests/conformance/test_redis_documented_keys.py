"""What operators and consoles of the documented layout find on Redis: rows, leases, fences, tombstones."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
import redis

from plaita.backends.limits import Limits
from plaita.backends.redis import RedisBackend
from plaita.base.moment import iso
from plaita.ports.runs import Closing, End, HandBack, Keep, Park, Tombstoned
from plaita.ports.values import RunId
from plaita.storage.base import ExecutionState
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.stage import START_MS, WAIT, Stage, hand, listen, start

DAY_SECONDS = 86_400
ROW = "plaita:execution:r"
LEASE, FENCE, FENCEGEN = (f"plaita:execution:{kind}:r" for kind in ("lease", "fence", "fencegen"))
TOMBSTONE = "plaita:exec_tombstone:r"
FIELDS = set(ExecutionState.model_fields) - {"output"}
ERROR = (
    b'{"kind":"node_error","code":-9527,"message":"\\u00fc \\"no\\"","error_type":"node_error","path":["outer","pay"]}'
)


@pytest.fixture
def keys(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest_asyncio.fixture
async def stage(clock: HandClock, redis_url: str) -> AsyncIterator[Stage]:
    store = RedisBackend(redis_url, clock)
    yield Stage(store, clock)
    await store.close()


def row(keys: redis.Redis, name: str = ROW) -> dict[str, Any]:
    found = keys.get(name)
    assert isinstance(found, str)
    read: dict[str, Any] = json.loads(found)
    return read


async def test_a_queued_run_has_a_row_with_every_documented_field(stage: Stage, keys: redis.Redis) -> None:
    await stage.backend.submit(start(flow_version="7"))
    assert row(keys) == {
        **dict.fromkeys(FIELDS), "status": "queued", "execution_id": "r", "flow_id": "flow", "flow_version": "7",
        "flow_hash": "closure", "flow_hash_algo": "flow-closure-sha256", "tenant_id": "default", "context": {},
        "start_time": iso(START_MS), "last_update_time": iso(START_MS), "invoker": "worker",
    }  # fmt: skip


async def test_a_row_begins_with_its_status_and_follows_it(stage: Stage, keys: redis.Redis) -> None:
    seen = []
    claim = await stage.hold()
    seen.append(row(keys)["status"])
    await stage.settle(claim, Park(None), arms=(hand(),))
    seen.append(row(keys)["status"])
    await stage.backend.cancel(RunId("r"))
    assert [*seen, row(keys)["status"]] == ["running", "suspended", "cancelled"]
    assert str(keys.get(ROW)).startswith('{"status":"cancelled",')


async def test_a_row_is_not_written_while_the_status_stays(stage: Stage, keys: redis.Redis) -> None:
    claim = await stage.hold()
    keys.set(ROW, "as it was")
    await stage.settle(claim, Keep(), delta={"a": b"1"})
    assert keys.get(ROW) == "as it was"


async def test_the_row_of_a_failed_run_carries_its_error_and_the_node(stage: Stage, keys: redis.Redis) -> None:
    claim = await stage.hold()
    stage.clock.advance(1_500)
    await stage.settle(claim, End("error", error=ERROR))
    found = row(keys)
    assert found["error"] == json.loads(ERROR) | {"failed_node": "pay"}
    assert (found["start_time"], found["end_time"]) == (iso(START_MS), iso(START_MS + 1_500))


async def test_a_reopened_run_has_no_error_and_no_end(stage: Stage, keys: redis.Redis) -> None:
    await stage.settle(await stage.hold(), End("error", error=ERROR))
    await stage.backend.reopen(RunId("r"))
    found = row(keys)
    assert (found["status"], found["error"], found["end_time"], keys.ttl(ROW)) == ("running", None, None, -1)


async def test_only_the_row_of_an_ended_run_expires(redis_url: str, keys: redis.Redis, clock: HandClock) -> None:
    store = RedisBackend(redis_url, clock, limits=Limits(row_ttl_ms=2 * DAY_SECONDS * 1000))
    stage = Stage(store, clock)
    claim = await stage.hold()
    while_running = keys.ttl(ROW)
    await stage.settle(claim, End("completed", b"1"))
    await store.close()
    assert while_running == -1
    assert 2 * DAY_SECONDS - 60 < int(str(keys.ttl(ROW))) <= 2 * DAY_SECONDS


async def test_the_index_orders_executions_by_their_start(stage: Stage, keys: redis.Redis) -> None:
    await stage.backend.submit(start("a"))
    stage.clock.advance(2_000)
    await stage.backend.submit(start("b"))
    found = keys.zrange("plaita:execution:index", 0, -1, withscores=True)
    assert found == [("a", START_MS // 1000), ("b", START_MS // 1000 + 2)]


async def test_the_rows_of_a_tenant_stand_under_its_name(stage: Stage, keys: redis.Redis) -> None:
    await stage.hold(tenant="acme")
    assert row(keys, "plaita:acme:execution:r")["tenant_id"] == "acme"
    assert keys.exists("plaita:acme:execution:lease:r", "plaita:acme:execution:index") == 2
    assert not keys.exists(ROW)


async def test_a_claim_is_seen_as_lease_fence_and_generation(stage: Stage, keys: redis.Redis) -> None:
    await stage.hold()
    assert re.fullmatch(r"resume:holder1:[0-9a-f]{16}:1", str(keys.get(LEASE)))
    assert (keys.get(FENCE), keys.get(FENCEGEN)) == ("1", "1")
    assert 0 < int(str(keys.pttl(LEASE))) <= stage.backend.lease_ms
    assert 6 * DAY_SECONDS < int(str(keys.ttl(FENCE))) <= 7 * DAY_SECONDS
    assert keys.ttl(FENCEGEN) == -1


async def test_a_renewal_writes_the_same_lease_again(stage: Stage, keys: redis.Redis) -> None:
    claim = await stage.hold()
    before = keys.getdel(LEASE)
    stage.clock.advance(1_000)
    await stage.backend.renew([(RunId("r"), claim.token)])
    assert keys.get(LEASE) == before


async def test_a_claim_that_ends_leaves_no_lease(stage: Stage, keys: redis.Redis) -> None:
    await stage.settle(await stage.hold(), HandBack())
    assert not keys.exists(LEASE, FENCE)
    await stage.take()
    assert (keys.get(FENCE), keys.get(FENCEGEN)) == ("2", "2")


async def test_the_leases_of_a_process_that_is_gone_end_with_it(stage: Stage, keys: redis.Redis) -> None:
    await stage.hold()
    await stage.backend.release("holder1")
    assert not keys.exists(LEASE)


@pytest.mark.parametrize("how", ["delete", "prune"])
async def test_nothing_of_a_deleted_run_is_left_but_tombstone_and_generation(
    stage: Stage, keys: redis.Redis, how: str
) -> None:
    before = await residue(stage, keys, how)
    await stage.settle(await stage.hold(tags=("t",), business_key="k"), End("error", error=ERROR))
    assert await residue(stage, keys, how) - before == {TOMBSTONE, FENCEGEN, "plaita:grave:r"}
    assert 29 * DAY_SECONDS < int(str(keys.ttl(TOMBSTONE))) <= 30 * DAY_SECONDS
    assert 89 * DAY_SECONDS < int(str(keys.ttl(FENCEGEN))) <= 90 * DAY_SECONDS
    assert row(keys, TOMBSTONE) == {
        "tenant": "default", "deleted_at": iso(stage.clock.now_ms()), "reason": "execution_deleted",
    }  # fmt: skip


async def test_limits_of_nothing_keep_rows_for_ever_and_bury_without_a_stone(
    redis_url: str, keys: redis.Redis, clock: HandClock
) -> None:
    store = RedisBackend(redis_url, clock, limits=Limits(row_ttl_ms=0, tombstone_ms=0))
    stage = Stage(store, clock)
    await stage.settle(await stage.hold(), End("completed", b"1"))
    kept = keys.ttl(ROW)
    await store.delete(RunId("r"))
    await store.close()
    assert kept == -1
    assert not keys.exists(ROW, TOMBSTONE)


async def residue(stage: Stage, keys: redis.Redis, how: str) -> set[str]:
    """What is there once the run is removed; keys of the store as a whole are there from the first claim on."""
    await stage.take()
    stage.clock.advance(10)
    if how == "delete":
        await stage.backend.delete(RunId("r"))
    else:
        await stage.backend.prune(stage.clock.now_ms())
    return set(keys.scan_iter()) - {"plaita:counters", "plaita:queues", "plaita:pulse", "plaita:kinds"}


@pytest.mark.parametrize(("run_id", "tenant"), [("index", "default"), ("lease:r", "default"), ("r", "queue")])
async def test_a_name_the_layout_cannot_spell_is_left_out_of_it(
    stage: Stage, keys: redis.Redis, run_id: str, tenant: str
) -> None:
    await stage.hold(run_id, tenant=tenant)
    assert list(keys.scan_iter("*execution:*")) == []


async def test_runs_whose_ids_continue_each_other_are_apart(stage: Stage) -> None:
    ids = ["r", "r:f", "r:w", "r:e", "r:log", "r:names", "frames:r"]
    for run_id in ids:
        claim = await stage.hold(run_id)
        await stage.settle(claim, Keep(), delta={"at": run_id.encode()}, history=(b"{}",), arms=(hand(),))
    assert [await stage.backend.frames(RunId(run_id)) for run_id in ids] == [{"at": i.encode()} for i in ids]
    assert [list(await stage.waits(run_id)) for run_id in ids] == [["w"]] * len(ids)


@pytest.mark.parametrize(
    "at_ms",
    [0, 951_782_399_999, 951_782_400_000, 951_868_800_000, 1_078_012_800_000, 4_107_542_400_000, 253_402_214_399_999],
)
async def test_times_are_written_as_everywhere_else(redis_url: str, keys: redis.Redis, at_ms: int) -> None:
    store = RedisBackend(redis_url, HandClock(at_ms))
    await store.submit(start())
    await store.close()
    assert row(keys)["start_time"] == iso(at_ms)


async def test_a_store_that_shows_nothing_writes_no_documented_key_of_an_execution(
    redis_url: str, keys: redis.Redis, clock: HandClock
) -> None:
    store = RedisBackend(redis_url, clock, limits=Limits(mirrored=False))
    stage = Stage(store, clock)
    seen: set[str] = set()
    claim = await stage.hold()
    seen |= set(map(str, keys.keys("*")))
    await stage.settle(claim, Park(None), arms=(listen(key=None),))
    seen |= set(map(str, keys.keys("*")))
    await store.publish("e", "pay", None, b"{}")
    [claim] = await stage.take()
    await stage.settle(claim, End("error", error=ERROR), ack=1, closes=(Closing(WAIT, "read"),))
    await store.reopen(RunId("r"))
    seen |= set(map(str, keys.keys("*")))
    [claim] = await stage.take()
    await stage.settle(claim, End("completed", b"1"))
    await store.delete(RunId("r"))
    seen |= set(map(str, keys.keys("*")))
    refused = await store.submit(start())
    await store.close()
    assert [key for key in seen if re.search(r":(execution|subscription|exec_tombstone):", key)] == []
    assert isinstance(refused, Tombstoned)


async def test_what_is_shown_of_an_execution_is_decided_at_its_start(
    redis_url: str, keys: redis.Redis, clock: HandClock
) -> None:
    silent = Stage(RedisBackend(redis_url, clock, limits=Limits(mirrored=False)), clock)
    telling = Stage(RedisBackend(redis_url, clock), clock)
    await silent.backend.submit(start("a"))
    await telling.backend.submit(start("b"))
    for claim, other in zip(await telling.take(2), (telling, silent), strict=True):
        await other.settle(claim, Park(None), arms=(hand(),))
    await silent.backend.close()
    await telling.backend.close()
    shown = [str(key).removeprefix("plaita:execution:") for key in keys.keys("plaita:execution:*")]
    assert sorted(shown) == ["b", "fencegen:b", "index"]
    assert row(keys, "plaita:execution:b")["status"] == "suspended"
