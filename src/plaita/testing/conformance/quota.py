"""What every store must do about the cap on running runs. Needs the fixture ``capped``: a backend with a cap of one."""

from __future__ import annotations

import pytest

from plaita.base.json import encode
from plaita.ports.backend import Backend
from plaita.ports.runs import Cancelled, CancelRequested, Claim, End, Keep, Park, Settled, Woken
from plaita.ports.values import RunId
from plaita.testing.conformance.stage import WAIT, Contract, HandClock, Stage, hand, start

A, B, C = RunId("a"), RunId("b"), RunId("c")


class QuotaContract(Contract):
    """One run of a tenant at a time; the others wait their turn."""

    @pytest.fixture
    def stage(self, capped: Backend, clock: HandClock) -> Stage:
        return Stage(capped, clock)

    async def _names(self, stage: Stage) -> list[str]:
        assert await stage.backend.audit() == []
        return [claim.header.run_id for claim in await stage.take(9)]

    async def _parked(self, stage: Stage) -> Claim:
        claim = await stage.hold(A)
        await stage.settle(claim, Park(None), arms=(hand(),))
        return claim

    async def test_a_start_over_the_cap_waits_for_a_slot_and_is_visible(self, stage: Stage) -> None:
        await stage.hold(A)
        await stage.backend.submit(start(B))
        assert await self._names(stage) == []
        assert await stage.status(B) == "queued"

    async def test_an_end_passes_the_slot_on_in_the_same_step(self, stage: Stage) -> None:
        claim = await stage.hold(A)
        await stage.backend.submit(start(B))
        await stage.settle(claim, End("completed"))
        assert await self._names(stage) == [B]

    async def test_a_waiting_run_holds_no_slot(self, stage: Stage) -> None:
        await self._parked(stage)
        await stage.backend.submit(start(B))
        assert await self._names(stage) == [B]

    async def test_a_start_that_is_not_to_wait_runs_beside_the_cap_until_it_parks(self, stage: Stage) -> None:
        await stage.backend.publish_flow("flow", "1", "closure")
        held = await stage.hold(A)
        await stage.backend.submit(start(C))
        body = {"type": "start", "flow_id": "flow", "execution_id": B, "quota_bypass": True}
        await stage.backend.offer("m", encode(body))
        await stage.backend.accept(1)
        [claim] = await stage.take(9)
        assert (claim.header.run_id, await stage.backend.audit()) == (B, [])
        await stage.settle(claim, Park(None), arms=(hand(),))
        assert await self._names(stage) == []
        await stage.backend.wake(B, WAIT, b"1")
        assert await self._names(stage) == []
        await stage.settle(held, End("completed", b"1"))
        assert await self._names(stage) == [B]

    async def test_a_resume_goes_before_a_start(self, stage: Stage) -> None:
        await self._parked(stage)
        claim = await stage.hold(B)
        await stage.backend.submit(start(C))
        assert await stage.backend.wake(A, WAIT, b"1") == Woken(A)
        assert await self._names(stage) == []
        await stage.settle(claim, End("completed"))
        assert await self._names(stage) == [A]

    async def test_a_timer_queues_like_any_resume(self, stage: Stage) -> None:
        claim = await stage.hold(A)
        await stage.settle(claim, Park(stage.clock.now_ms() + 10), arms=(hand(),))
        other = await stage.hold(B)
        await stage.pass_time(10)
        assert await self._names(stage) == []
        assert isinstance(await stage.settle(other, Park(None), arms=(hand(),)), Settled)
        assert await self._names(stage) == [A]

    async def test_a_cancelled_run_frees_its_slot_or_its_place_in_the_queue(self, stage: Stage) -> None:
        claim = await stage.hold(A)
        await stage.backend.submit(start(B))
        await stage.backend.submit(start(C))
        assert await stage.backend.cancel(B) == Cancelled()
        assert await stage.backend.cancel(A) == CancelRequested()
        await stage.settle(claim, Keep())
        assert await self._names(stage) == [C]

    async def test_a_takeover_keeps_the_slot(self, stage: Stage) -> None:
        await stage.hold(A)
        await stage.backend.submit(start(B))
        await stage.lease_over()
        assert await self._names(stage) == [A]

    async def test_tenants_do_not_share_a_cap(self, stage: Stage) -> None:
        await stage.backend.submit(start(A, tenant="x"))
        await stage.backend.submit(start(B, tenant="y"))
        assert sorted(await self._names(stage)) == [A, B]

    async def test_resumes_cannot_keep_a_start_waiting_for_ever(self, stage: Stage) -> None:
        for number in range(10):
            claim = await stage.hold(f"r{number}")
            await stage.settle(claim, Park(None), arms=(hand(),))
        claim = await stage.hold("busy")
        await stage.backend.submit(start("start"))
        for number in range(10):
            await stage.backend.wake(RunId(f"r{number}"), WAIT, b"1")
        order: list[str] = []
        for _ in range(10):
            await stage.settle(claim, Park(None), arms=(hand(f"w{len(order)}"),), ack=1) if order else (
                await stage.settle(claim, End("completed"))
            )
            [claim] = await stage.take()
            order.append(claim.header.run_id)
            if claim.header.run_id == "start":
                break
        assert "start" in order
