"""What is deferred on Redis is, to everybody, what it would be had it been decided at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
import redis

from plaita.backends.limits import Limits
from plaita.backends.redis import RedisBackend
from plaita.ports.runs import Arm, Closing, NotTerminal, Park
from plaita.ports.values import RunId, WaitId
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.stage import RUN, WAIT, Stage, listen, start

OTHERS = tuple(RunId(f"other{number}") for number in range(3))
IN_HEADER = 8
"""So many events that an execution took are counted in its header."""


@pytest_asyncio.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    clock = HandClock()
    store = RedisBackend(redis_url, clock, limits=Limits(chunk=1))
    yield Stage(store, clock)
    await store.close()


async def wait_all(stage: Stage, runs: Sequence[RunId], arm: Arm) -> None:
    """Each of them waits for an event."""
    for run_id in runs:
        await stage.settle(await stage.hold(run_id), Park(None), arms=(arm,))


async def reach_all(stage: Stage, event_id: str) -> None:
    """Give an event to all who wait."""
    await stage.backend.publish(event_id, "pay", "k", b"{}")
    while await stage.backend.carry_on(1):
        pass


async def test_what_is_deferred_counts_as_running_when_a_cap_comes(stage: Stage, client: redis.Redis) -> None:
    await wait_all(stage, OTHERS, listen())
    await reach_all(stage, "e")
    assert client.zcard("plaita:deferred") == len(OTHERS) - 1
    client.hset("plaita:tenant_quota", "default", len(OTHERS))
    await stage.backend.submit(start(RUN))
    late = await stage.backend.run(RUN)
    assert late is not None
    assert (late.slot, late.due_ms) == (False, None)
    assert await stage.backend.audit() == []


async def test_a_cap_that_comes_does_not_take_back_what_an_event_gave(stage: Stage, client: redis.Redis) -> None:
    await wait_all(stage, OTHERS, listen())
    await reach_all(stage, "e")
    client.hset("plaita:tenant_quota", "default", 1)
    for run_id in OTHERS:
        run = await stage.backend.run(run_id)
        assert run is not None
        assert (run.slot, run.due_ms) == (True, stage.clock.now_ms())
    assert {claim.header.run_id for claim in await stage.take(10)} == set(OTHERS)


@pytest.mark.parametrize("looks", ["delete", "prune", "reload"])
async def test_who_looks_and_writes_nothing_takes_no_event_for_a_run(
    looks: str, stage: Stage, client: redis.Redis
) -> None:
    """One that it refuses is free for its next wait, however many it took before."""
    claim = await stage.hold()
    for number in range(IN_HEADER):
        await stage.backend.publish(f"e{number}", "pay", "k", b"{}")
        claim = await stage.keep(claim, listen(f"w{number}"))
        claim = await stage.keep(claim, closes=(Closing(WaitId(f"w{number}"), "read"),), ack=number + 1)
    await wait_all(stage, OTHERS, listen())
    await stage.settle(claim, Park(None), arms=(listen(by_filter=True),))
    await reach_all(stage, "last")
    if looks == "delete":
        assert isinstance(await stage.backend.delete(RUN), NotTerminal)
    elif looks == "prune":
        await stage.backend.prune(0)
    else:
        await stage.backend.reload(RUN, claim.token)
    [again] = await stage.take(only=RUN)
    assert [(mail.kind, mail.wait_id) for mail in again.mailbox] == [("candidate", WAIT)]
    refused = await stage.keep(again, closes=(Closing(WAIT, "cut"),), ack=IN_HEADER + 1)
    taken = await stage.keep(refused, listen("next"))
    assert [(mail.kind, mail.wait_id) for mail in taken.mailbox] == [("wake", "next")]
