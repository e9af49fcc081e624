"""What every store must do about definitions that nobody needs any more."""

from __future__ import annotations

from dataclasses import replace

from plaita.base.duration import DAY_MS
from plaita.ports.runs import Adoption, Block, End, Park, Reopened, Spawn, Submission, SubmitConflict, Submitted
from plaita.ports.values import RunId
from plaita.testing.conformance.stage import RUN, Contract, Stage, hand, start

HOUR_MS = 3_600_000
MONTH_MS = 30 * DAY_MS
OURS, OTHER = "closure", "other"
DOCUMENT = b'{"flow":{}}'
MANY = 450
"""More than any portion."""


def of_other(run_id: str) -> Submission:
    """A start with another definition than the usual one."""
    return replace(start(run_id), closure=OTHER)


async def put(stage: Stage, *closures: str) -> None:
    for closure in closures or (OURS,):
        await stage.backend.put_closure(closure, DOCUMENT)


async def prune(stage: Stage, age_ms: int = MONTH_MS) -> int:
    return await stage.backend.prune(stage.clock.now_ms() - age_ms)


async def is_there(stage: Stage, closure: str = OURS) -> bool:
    found = await stage.backend.closure(closure)
    assert found in (None, DOCUMENT)
    return found is not None


async def ended(stage: Stage, run_id: str = RUN) -> None:
    await stage.settle(await stage.hold(run_id), End("completed", b"1"))


class UnusedContract(Contract):
    """A closure that nothing has goes once it is unused for long enough."""

    async def test_one_that_nobody_started_goes_when_it_is_old(self, stage: Stage) -> None:
        await put(stage)
        stage.clock.advance(MONTH_MS)
        await prune(stage)
        assert await is_there(stage)
        stage.clock.advance(HOUR_MS + 1)
        assert await prune(stage) == 0
        assert not await is_there(stage)

    async def test_one_that_is_stored_again_is_young_again(self, stage: Stage) -> None:
        await put(stage)
        stage.clock.advance(MONTH_MS + DAY_MS)
        await put(stage)
        await prune(stage)
        assert await is_there(stage)
        stage.clock.advance(MONTH_MS + DAY_MS)
        await prune(stage)
        assert not await is_there(stage)

    async def test_one_that_was_stored_a_moment_ago_stays_whatever_the_age_that_is_asked_for(
        self, stage: Stage
    ) -> None:
        await put(stage)
        stage.clock.advance(HOUR_MS // 3)
        await put(stage)
        stage.clock.advance(HOUR_MS // 2)
        await prune(stage, 0)
        assert await is_there(stage)

    async def test_a_start_without_storing_it_makes_it_young_again(self, stage: Stage) -> None:
        await put(stage)
        await stage.backend.submit(start("first"))
        stage.clock.advance(2 * MONTH_MS)
        await ended(stage)
        for run_id in ("first", RUN):
            await stage.backend.cancel(RunId(run_id))
            await stage.backend.delete(RunId(run_id))
        await prune(stage)
        assert await is_there(stage)
        stage.clock.advance(MONTH_MS + DAY_MS)
        await prune(stage)
        assert not await is_there(stage)

    async def test_a_start_brings_its_definition(self, stage: Stage) -> None:
        for run_id in ("first", RUN):
            assert isinstance(await stage.backend.submit(start(run_id), DOCUMENT), Submitted)
            assert await is_there(stage)

    async def test_a_start_that_is_refused_brings_none(self, stage: Stage) -> None:
        await stage.backend.submit(start())
        assert isinstance(await stage.backend.submit(start(digest="two"), DOCUMENT), SubmitConflict)
        assert not await is_there(stage)

    async def test_a_start_brings_again_what_is_gone(self, stage: Stage) -> None:
        await stage.backend.submit(start("first"), DOCUMENT)
        await ended(stage, "first")
        stage.clock.advance(2 * MONTH_MS)
        await prune(stage)
        assert not await is_there(stage)
        await stage.backend.submit(start(), DOCUMENT)
        await prune(stage)
        assert await is_there(stage)

    async def test_whoever_looked_a_version_up_may_still_start_it_after_another_took_its_place(
        self, stage: Stage
    ) -> None:
        await put(stage, OURS, OTHER)
        await stage.backend.publish_flow("f", "1", OURS)
        stage.clock.advance(MONTH_MS)
        await stage.backend.publish_flow("f", "1", OTHER)
        await prune(stage, 0)
        assert await is_there(stage)

    async def test_a_clock_that_goes_back_makes_none_older(self, stage: Stage) -> None:
        await put(stage)
        stage.clock.advance(-DAY_MS)
        await put(stage)
        await stage.backend.submit(start())
        await stage.backend.cancel(RUN)
        await stage.backend.delete(RUN)
        stage.clock.advance(DAY_MS)
        await prune(stage, 0)
        assert await is_there(stage)

    async def test_one_that_is_gone_is_stored_and_started_anew(self, stage: Stage) -> None:
        await put(stage)
        stage.clock.advance(2 * MONTH_MS)
        await prune(stage)
        assert not await is_there(stage)
        await put(stage)
        assert isinstance(await stage.backend.submit(start()), Submitted)
        [claim] = await stage.take()
        assert await is_there(stage, claim.header.closure)

    async def test_any_number_goes_at_once_and_what_is_needed_stays(self, stage: Stage) -> None:
        names = [f"c{number}" for number in range(MANY)]
        await put(stage, *names)
        kept = names[::50]
        for closure in kept:
            await stage.backend.submit(replace(start(closure), closure=closure))
        stage.clock.advance(2 * MONTH_MS)
        await prune(stage)
        assert [closure for closure in names if await is_there(stage, closure)] == kept


class NeededContract(Contract):
    """A closure that something has stays, whatever its age."""

    async def test_a_run_keeps_it_while_it_lives_and_until_it_is_removed(self, stage: Stage) -> None:
        await put(stage)
        await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
        stage.clock.advance(2 * MONTH_MS)
        await prune(stage)
        assert await is_there(stage)
        await stage.backend.cancel(RUN)
        stage.clock.advance(MONTH_MS)
        await prune(stage)
        assert await is_there(stage)
        stage.clock.advance(1)
        assert await prune(stage) == 1
        assert not await is_there(stage)

    async def test_one_of_two_runs_keeps_it_alone(self, stage: Stage) -> None:
        await put(stage)
        for run_id in ("a", "b"):
            await ended(stage, run_id)
        stage.clock.advance(DAY_MS)
        await stage.backend.delete(RunId("a"))
        await prune(stage, 2 * HOUR_MS + DAY_MS)
        assert await is_there(stage)
        view = await stage.backend.run(RunId("b"))
        assert view is not None and view.closure == OURS
        await stage.backend.delete(RunId("b"))
        await prune(stage, 0)
        assert not await is_there(stage)

    async def test_runs_of_different_flows_keep_one_definition_each(self, stage: Stage) -> None:
        await put(stage)
        await ended(stage, "a")
        await stage.backend.submit(replace(start("b"), flow_id="another"))
        stage.clock.advance(DAY_MS)
        await prune(stage, 0)
        assert await stage.backend.run(RunId("a")) is None
        assert await is_there(stage)
        await stage.backend.cancel(RunId("b"))
        stage.clock.advance(DAY_MS)
        await prune(stage, 0)
        assert not await is_there(stage)

    async def test_a_failure_can_be_retried_as_long_as_it_is_there(self, stage: Stage) -> None:
        await put(stage)
        await stage.settle(await stage.hold(), End("error", error=b"{}"))
        stage.clock.advance(MONTH_MS)
        await prune(stage)
        assert await stage.backend.reopen(RUN) == Reopened(RUN)
        stage.clock.advance(2 * MONTH_MS)
        await prune(stage)
        [claim] = await stage.take()
        assert await is_there(stage, claim.header.closure)

    async def test_a_blocked_run_keeps_it(self, stage: Stage) -> None:
        await put(stage)
        await stage.settle(await stage.hold(), Block("a doubt"))
        stage.clock.advance(2 * MONTH_MS)
        await prune(stage)
        assert await is_there(stage)

    async def test_a_delayed_start_keeps_it(self, stage: Stage) -> None:
        await put(stage)
        await stage.backend.submit(start(not_before_ms=stage.clock.now_ms() + 3 * MONTH_MS))
        stage.clock.advance(2 * MONTH_MS)
        await prune(stage)
        assert await is_there(stage)

    async def test_a_run_that_was_taken_over_keeps_it(self, stage: Stage) -> None:
        await put(stage)
        await stage.backend.adopt(start(), Adoption({"h": b"[1]"}, Park(None), (hand(),)))
        stage.clock.advance(2 * MONTH_MS)
        await prune(stage)
        assert await is_there(stage)

    async def test_a_published_version_keeps_it_and_one_that_was_replaced_does_not(self, stage: Stage) -> None:
        await put(stage, OURS, OTHER)
        await stage.backend.publish_flow("f", "1", OURS)
        await stage.backend.publish_flow("f", "2", OTHER)
        stage.clock.advance(2 * MONTH_MS)
        await prune(stage)
        assert (await is_there(stage), await is_there(stage, OTHER)) == (True, True)
        await stage.backend.publish_flow("f", "1", OTHER)
        stage.clock.advance(MONTH_MS + DAY_MS)
        await prune(stage)
        assert (await is_there(stage), await is_there(stage, OTHER)) == (False, True)

    async def test_a_version_of_another_flow_keeps_it_as_well(self, stage: Stage) -> None:
        await put(stage, OURS, OTHER)
        await stage.backend.publish_flow("f", "1", OURS)
        await stage.backend.publish_flow("g", "1", OURS)
        await stage.backend.publish_flow("f", "1", OTHER)
        stage.clock.advance(2 * MONTH_MS)
        await prune(stage)
        assert await is_there(stage)

    async def test_a_child_that_is_promised_keeps_it_after_its_parent_is_gone(self, stage: Stage) -> None:
        await put(stage, OTHER)
        parent = await stage.hold()
        stage.clock.advance(DAY_MS)
        await stage.settle(parent, End("completed"), spawns=(Spawn(of_other("free"), None),))
        await stage.backend.delete(RUN)
        stage.clock.advance(DAY_MS)
        await prune(stage, 0)
        assert await is_there(stage, OTHER)
        [child] = await stage.take(only=RunId("free"))
        stage.clock.advance(DAY_MS)
        await prune(stage, 0)
        assert await is_there(stage, child.header.closure)
        await stage.settle(child, End("completed"))
        stage.clock.advance(DAY_MS)
        assert await prune(stage, 0) == 1
        assert not await is_there(stage, OTHER)

    async def test_a_child_that_may_not_start_keeps_nothing(self, stage: Stage) -> None:
        await put(stage, OTHER)
        await ended(stage, "free")
        await stage.backend.delete(RunId("free"))
        await stage.settle(await stage.hold(), End("completed"), spawns=(Spawn(of_other("free"), None),))
        await stage.take(queues=("nobody",))
        stage.clock.advance(DAY_MS)
        await prune(stage, 0)
        assert not await is_there(stage, OTHER)
        assert await stage.backend.audit() == []
