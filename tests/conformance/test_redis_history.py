"""The history of an execution has a bound on Redis; whoever reads it is told what went."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing

import pytest_asyncio
import redis

from plaita.backends.limits import Limits
from plaita.backends.redis import RedisBackend
from plaita.control.following import entries
from plaita.control.looking import history
from plaita.ports.runs import Park
from plaita.storage import RedisExecutionStorage
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.stage import RUN, Stage, hand

KEPT = 5
SAID = 1_203
"""More than one command takes; with it come ``submitted`` and ``claimed``."""
ALL = SAID + 2


@pytest_asyncio.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    clock = HandClock()
    store = RedisBackend(redis_url, clock, limits=Limits(history_max=KEPT))
    stage = Stage(store, clock)
    claim = await stage.hold()
    said = tuple(b'{"event":"n","n":%d}' % n for n in range(SAID))
    claim = await stage.keep(claim, history=said[: SAID - 3])
    await stage.settle(claim, Park(None), arms=(hand(),), history=said[SAID - 3 :])
    yield stage
    await store.close()


async def test_the_oldest_entries_go_and_are_counted(stage: Stage, client: redis.Redis) -> None:
    kept = await stage.backend.history(RUN)
    assert [entry.seq for entry in kept] == list(range(ALL - KEPT + 1, ALL + 1))
    assert client.llen(f"plaita:run.log:{RUN}") == KEPT
    assert client.hget("plaita:counters", "history_trimmed") == str(ALL - KEPT)


async def test_a_reader_is_told_how_many_are_gone(stage: Stage) -> None:
    gone = {"event": "entries_gone", "seq": ALL - KEPT, "count": ALL - KEPT}
    first, *rest = (page := await history(stage.backend, RUN, limit=2))["items"]
    assert first | gone == first
    assert ([entry["n"] for entry in rest], page["next"]) == ([SAID - KEPT, SAID - KEPT + 1], ALL - KEPT + 2)
    following = await history(stage.backend, RUN, after=page["next"])
    assert [entry["event"] for entry in following["items"]] == ["n"] * (KEPT - 2)
    told = [entry async for entry in entries(stage.backend, RUN, follow=True)]
    assert told == [first, *rest, *following["items"]]


async def test_a_gap_that_opens_while_somebody_reads_counts_from_where_he_was(stage: Stage) -> None:
    [first, *_] = (await history(stage.backend, RUN, after=ALL - KEPT - 7))["items"]
    assert (first["event"], first["seq"], first["count"]) == ("entries_gone", ALL - KEPT, 7)


async def test_the_documented_timeline_counts_them_as_dropped(stage: Stage, client: redis.Redis) -> None:
    with closing(RedisExecutionStorage(client=client)) as storage:
        state = await asyncio.to_thread(storage.load_execution_state, RUN)
    assert state is not None
    assert state.timeline is not None
    assert (len(state.timeline["events"]), state.timeline["dropped"]) == (KEPT, ALL - KEPT)
