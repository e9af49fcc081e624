"""What one execution takes on Redis: little as long as it is small, and the same answers when it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import redis

from plaita.backends.limits import Limits
from plaita.backends.redis import RedisBackend
from plaita.ports.runs import (
    AlreadyResolved,
    Arm,
    Cancelled,
    Claim,
    Closing,
    End,
    HandBack,
    Keep,
    Park,
    Settled,
    Step,
    Woken,
)
from plaita.ports.values import RunId, WaitId
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.stage import RUN, WAIT, Stage, hand, listen

CHUNK = 3
FRAMES = "plaita:run.frames:r"
WAITS = "plaita:run.waits:r"
CONSUMED = "plaita:run.consumed:r"


@pytest_asyncio.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    clock = HandClock()
    store = RedisBackend(redis_url, clock, limits=Limits(chunk=CHUNK, chunk_deferred=2 * CHUNK))
    yield Stage(store, clock)
    await store.close()


async def test_a_waiting_execution_is_one_hash_and_its_history_beside_what_is_shown(
    stage: Stage, client: redis.Redis
) -> None:
    claim = await stage.hold()
    await stage.backend.settle(
        Step(RUN, claim.token, 1, "digest", {"f": b"[1]"}, Park(None), arms=(listen(key=None),), history=(b"{}",))
    )
    own = {name for name in client.scan_iter("plaita:*") if name.endswith(":r") and ":run" in name}
    assert own == {"plaita:run:r", "plaita:run.log:r"}
    assert set(client.hkeys("plaita:run:r")) == {"h", "f", "in"}
    assert await stage.backend.frames(RUN) == {"f": b"[1]"}


async def test_frames_that_grow_large_are_kept_beside_and_read_the_same(stage: Stage, client: redis.Redis) -> None:
    claim = await stage.hold()
    small, large = b"s" * 100, b"\xff" * 2_000
    steps: tuple[dict[str, bytes | None], ...] = (
        {"a": small, "b": small},
        {"c": large},
        {"a": None, "c": small},
        {"d": large, "b": None},
    )
    kept: dict[str, bytes | None] = {}
    beside = []
    for seq, delta in enumerate(steps, 1):
        await stage.backend.settle(Step(RUN, claim.token, seq, f"digest{seq}", delta, Keep()))
        kept = {name: value for name, value in (kept | delta).items() if value is not None}
        assert await stage.backend.frames(RUN) == kept
        beside.append(bool(client.exists(FRAMES)))
    assert beside == [False, True, True, True]
    await stage.backend.settle(Step(RUN, claim.token, 5, "digest5", {}, End("completed", b"1")))
    assert await stage.backend.frames(RUN) == {}
    assert not client.exists(FRAMES)


async def test_a_claim_brings_small_frames_along_and_leaves_large_ones_to_be_asked_for(stage: Stage) -> None:
    claim = await stage.hold()
    assert claim.frames == {}
    await stage.settle(claim, HandBack(), delta={"a": b"1", "b": b"2"})
    [claim] = await stage.take()
    assert claim.frames == {"a": b"1", "b": b"2"}
    await stage.settle(claim, HandBack(), delta={"a": b"v" * 2_000})
    [claim] = await stage.take()
    again = await stage.backend.reload(RUN, claim.token)
    assert claim.frames is None
    assert isinstance(again, Claim) and again.frames is None
    assert await stage.backend.frames(RUN) == {"a": b"v" * 2_000, "b": b"2"}


@pytest.mark.parametrize("count", [0, 1, 15, 16, 40])
@pytest.mark.parametrize("size", [0, 31, 32])
async def test_packed_frames_are_read_as_they_were_written(stage: Stage, count: int, size: int) -> None:
    claim = await stage.hold()
    delta: dict[str, bytes | None] = {
        f"{number}": bytes([number]) * min(size, 900 // (count or 1)) for number in range(count)
    }
    await stage.backend.settle(Step(RUN, claim.token, 1, "digest", {"x": b"x", **delta}, Keep()))
    await stage.backend.settle(Step(RUN, claim.token, 2, "digest2", {"x": None}, Keep()))
    assert await stage.backend.frames(RUN) == delta


@pytest.mark.parametrize("size", [255, 256, 900, 1_200, 70_000])
async def test_a_long_frame_is_read_as_it_was_written(stage: Stage, size: int) -> None:
    claim = await stage.hold()
    frames: dict[str, bytes | None] = {"n" * 40: b"v" * size, "h": b"[1]"}
    await stage.backend.settle(Step(RUN, claim.token, 1, "digest", frames, Keep()))
    assert await stage.backend.frames(RUN) == frames


async def test_the_frames_of_a_failure_stay_until_it_goes_on_and_ends(stage: Stage) -> None:
    claim = await stage.hold()
    await stage.backend.settle(Step(RUN, claim.token, 1, "digest", {"h": b"[1]"}, End("error", error=b"{}")))
    assert await stage.backend.frames(RUN) == {"h": b"[1]"}
    await stage.backend.reopen(RUN)
    [again] = await stage.take()
    await stage.backend.settle(Step(RUN, again.token, 2, "digest2", {"h": None}, End("completed", b"1")))
    assert await stage.backend.frames(RUN) == {}


async def test_however_many_waits_there_are_each_is_answered_once(stage: Stage, client: redis.Redis) -> None:
    names = [WaitId(f"w{number}") for number in range(7)]
    await stage.settle(await stage.hold(), Park(None), arms=tuple(hand(name) for name in names))
    assert 0 < client.hlen(WAITS) < len(names)
    for name in (names[6], names[0], names[3]):
        assert await stage.backend.wake(RUN, name, b"1", "ann") == Woken(RUN)
    assert isinstance(await stage.backend.wake(RUN, names[6], b"2"), AlreadyResolved)
    [claim] = await stage.take()
    assert {mail.wait_id for mail in claim.mailbox} == {names[6], names[0], names[3]}
    await stage.settle(claim, Park(None), closes=tuple(Closing(names[at], "read") for at in (6, 0, 3)), ack=3)
    found = {wait.wait_id: wait.state for wait in await stage.backend.waits(RUN, open_only=False)}
    assert found == {name: "closed" if at in (0, 3, 6) else "open" for at, name in enumerate(names)}
    assert isinstance(await stage.backend.wake(RUN, names[3], b"2"), AlreadyResolved)


async def test_an_execution_takes_each_event_once_however_many_it_took(stage: Stage, client: redis.Redis) -> None:
    claim = await stage.hold()
    for number in range(12):
        await stage.backend.publish(f"e{number}", "pay", "k", b"%d" % number)
    taken = []
    for number in range(12):
        name = WaitId(f"w{number}")
        claim = await stage.keep(claim, listen(name))
        taken += [mail.data for mail in claim.mailbox]
        claim = await stage.keep(claim, closes=(Closing(name, "read"),), ack=number + 1)
    assert taken == [b"%d" % number for number in range(12)]
    assert client.hlen(CONSUMED) == 4
    claim = await stage.keep(claim, listen(WaitId("last")))
    assert claim.mailbox == ()
    await stage.settle(claim, End("completed", b"1"))
    assert not client.exists(CONSUMED)


async def test_what_executions_of_one_version_share_is_kept_once(stage: Stage, client: redis.Redis) -> None:
    for number in range(3):
        await stage.hold(f"r{number}")
    assert client.hlen("plaita:kinds") == 1


@pytest.mark.parametrize(
    ("others", "counts"),
    [
        ((), [3 * CHUNK, 5 * CHUNK, 6 * CHUNK]),
        ((hand("other"),), [2 * CHUNK, 3 * CHUNK, 4 * CHUNK, 5 * CHUNK, 6 * CHUNK]),
    ],
    ids=["what can be deferred", "what is decided at once"],
)
async def test_one_step_carries_one_chunk_of_a_fan_out_on(
    stage: Stage, others: tuple[Arm, ...], counts: list[int]
) -> None:
    runs = 6 * CHUNK
    for number in range(runs):
        await stage.settle(await stage.hold(f"r{number}"), Park(None), arms=(listen(key=None), *others))

    async def due() -> int:
        found = await asyncio.gather(*(stage.backend.run(RunId(f"r{number}")) for number in range(runs)))
        return sum(run is not None and run.due_ms is not None for run in found)

    assert (await stage.backend.publish("e", "pay", None, b"{}")).woken == CHUNK
    found = []
    while await stage.backend.carry_on(16):
        found.append(await due())
    assert found == counts


@pytest.mark.parametrize("why", ["a slot is needed", "it is due", "a wait beside it"])
async def test_what_more_than_the_event_decides_is_not_deferred(why: str, redis_url: str, client: redis.Redis) -> None:
    clock = HandClock()
    limits = Limits(chunk=1, cap=2 if why == "a slot is needed" else None)
    stage = Stage(RedisBackend(redis_url, clock, limits=limits), clock)
    for number in range(3):
        due = clock.now_ms() + 10 if why == "it is due" else None
        beside = (hand("other"),) if why == "a wait beside it" else ()
        await stage.settle(await stage.hold(f"r{number}"), Park(due), arms=(listen(key=None), *beside))
    clock.advance(20)
    await stage.backend.publish("e", "pay", None, b"{}")
    while await stage.backend.carry_on(1):
        pass
    assert not client.exists("plaita:deferred")
    await stage.backend.close()


async def test_what_is_deferred_is_seen_in_three_indexes_alone_until_somebody_looks(
    stage: Stage, client: redis.Redis
) -> None:
    for number in range(2 * CHUNK):
        await stage.settle(await stage.hold(f"r{number}"), Park(None), arms=(listen(key=None),))
    last = f"r{2 * CHUNK - 1}"
    before = client.hgetall(f"plaita:run:{last}")
    await stage.backend.publish("e", "pay", None, b"{}")
    await stage.backend.carry_on(1)
    assert client.hgetall(f"plaita:run:{last}") == before
    assert client.zscore("plaita:deferred", last) == stage.clock.now_ms()
    assert client.zscore("plaita:tenant_running:default", last) is not None
    assert len(await stage.take(100)) == 2 * CHUNK
    assert not client.exists("plaita:deferred")


async def test_a_header_without_an_index_is_found_by_the_audit(stage: Stage, client: redis.Redis) -> None:
    await stage.settle(await stage.hold(), Park(None), arms=(Arm(WAIT, "hand", "node", "node"),))
    client.zrem("plaita:runs:status:suspended", "r")
    assert await stage.backend.audit() == ["run r: the index of suspended runs and the header disagree"]


async def test_an_execution_with_thousands_of_waits_ends_in_one_answer_and_is_looked_through(stage: Stage) -> None:
    claim = await stage.hold()
    many = tuple(listen(f"w{number}") for number in range(12_000))
    assert isinstance(await stage.settle(claim, Park(None), arms=many), Settled)
    assert await stage.backend.audit() == []
    # A server that were busy for as long as the square of the number takes would be given up.
    assert isinstance(await stage.backend.cancel(RUN), Cancelled)
    assert await stage.backend.waits(RUN) == []


async def test_waits_that_close_and_come_in_one_step_leave_the_others_in_their_order(stage: Stage) -> None:
    claim = await stage.hold()
    names = ["a", "b", "c", "d", "e", "f"]
    claim = await stage.keep(claim, *map(listen, names))
    closes = tuple(Closing(WaitId(name), "cut") for name in ("b", "e", "f"))
    await stage.settle(claim, Park(None), closes=closes, arms=(listen("g"), listen("h")))
    assert [wait.wait_id for wait in await stage.backend.waits(RUN)] == ["a", "c", "d", "g", "h"]
    assert await stage.backend.audit() == []
