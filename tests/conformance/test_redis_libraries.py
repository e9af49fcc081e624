"""The functions on the server: one library a release and its limits, and none that nobody uses."""

from __future__ import annotations

import asyncio
from typing import Any

import redis

from plaita.backends.limits import Limits
from plaita.backends.redis import RedisBackend
from plaita.ports.processes import Process


def libraries(url: str) -> set[str]:
    with redis.Redis.from_url(url, decode_responses=True, protocol=2) as client:
        listed: Any = client.function_list()
        return {library[1] for library in listed}


def process(holder: str) -> Process:
    return Process(holder, 1, ("default",), None, (), 0)


async def test_a_worker_removes_the_libraries_of_others_and_they_go_on(redis_url: str) -> None:
    old, new = RedisBackend(redis_url, limits=Limits(chunk=7)), RedisBackend(redis_url)
    await old.announce(process("old"))
    before = libraries(redis_url)
    await new.announce(process("new"))
    after = libraries(redis_url)
    assert (len(before), len(after), before & after) == (1, 1, set())
    assert [found.holder for found in await old.living()] == ["old", "new"]
    await old.announce(process("old"))
    assert libraries(redis_url) == before
    await old.close()
    await new.close()


async def test_workers_that_begin_at_once_do_not_trip_over_each_other(redis_url: str) -> None:
    await RedisBackend(redis_url, limits=Limits(chunk=7)).now_ms()
    crew = [RedisBackend(redis_url) for _ in range(8)]
    await asyncio.gather(*(store.announce(process(f"w{i}")) for i, store in enumerate(crew)))
    assert len(libraries(redis_url)) == 1
    for store in crew:
        await store.close()
