"""Runs that wait for a slot follow the cap of whoever works now."""

from __future__ import annotations

from plaita.backends.redis import RedisBackend
from plaita.ports.processes import Process
from plaita.testing.conformance.stage import start

WORKER = Process("holder", 1, ("default",), None, (), 0)
RUNS = 250


async def test_a_worker_without_a_cap_lets_in_whoever_waited_under_one(redis_url: str) -> None:
    capped, free = RedisBackend(redis_url, cap=1), RedisBackend(redis_url)
    for number in range(RUNS):
        await capped.submit(start(f"r{number}"))
    assert len(await capped.claim("a.n", RUNS)) == 1
    await free.announce(WORKER)
    assert len(await free.claim("b.n", RUNS)) == RUNS - 1
    assert await free.audit() == []
    await free.close()
    await capped.close()
