"""What every store does with leases and with time."""

from __future__ import annotations

from dataclasses import replace

from plaita.base.duration import DAY_MS
from plaita.ports.runs import CancelRequested, Dup, End, HandBack, Keep, Lost, Park, Renewed, Stale
from plaita.ports.values import RunId
from plaita.testing.conformance.stage import RUN, WAIT, Contract, Stage, hand, start


class LeaseContract(Contract):
    """How long a claim holds."""

    async def test_a_lease_is_over_exactly_at_its_end(self, stage: Stage) -> None:
        await stage.hold()
        await stage.pass_time(stage.backend.lease_ms - 1)
        assert await stage.take() == []
        await stage.pass_time(1)
        assert len(await stage.take()) == 1

    async def test_a_takeover_has_a_higher_generation_and_shuts_the_old_holder_out(self, stage: Stage) -> None:
        old = await stage.hold()
        await stage.lease_over()
        [new] = await stage.take()
        assert new.token.generation == old.token.generation + 1
        assert await stage.settle(old, Keep()) == Stale(new.token, 0)
        assert await stage.backend.renew([(RUN, old.token)]) == [Lost(0)]
        assert await stage.backend.reload(RUN, old.token) == Lost()

    async def test_what_was_settled_stays_although_nobody_heard_the_answer(self, stage: Stage) -> None:
        old = await stage.hold()
        step = stage.step(old, Keep(), delta={"call": b"1"}, history=(b'{"event":"returned"}',))
        await stage.backend.settle(step)
        await stage.lease_over()
        [new] = await stage.take()
        assert new.header.seq == 1
        assert await stage.backend.frames(RUN) == {"call": b"1"}
        assert await stage.backend.settle(step) == Dup(1, False, False, (), stage.clock.now_ms())
        assert (await stage.events()).count(b'{"event":"returned"}') == 1

    async def test_a_claim_says_whether_a_process_was_lost(self, stage: Stage) -> None:
        fresh = await stage.hold()
        await stage.lease_over()
        [lost] = await stage.take()
        assert await stage.backend.reload(RUN, lost.token) == replace(lost, takeover=False)
        await stage.settle(lost, HandBack())
        [given] = await stage.take()
        assert [claim.takeover for claim in (fresh, lost, given)] == [False, True, False]

    async def test_renewing_extends_from_now_and_revives_an_expired_lease_nobody_took(self, stage: Stage) -> None:
        claim = await stage.hold()
        await stage.lease_over()
        [answer] = await stage.backend.renew([(RUN, claim.token)])
        assert answer == Renewed(False, (), stage.clock.now_ms(), stage.backend.lease_ms)
        assert await stage.take() == []

    async def test_a_lost_renewal_tells_what_is_stored_of_the_same_incarnation(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold())
        await stage.settle(claim, End("completed", b"1"))
        pairs = [(RUN, claim.token), (RUN, replace(claim.token, incarnation="other")), (RunId("none"), claim.token)]
        assert await stage.backend.renew(pairs) == [Lost(2), Lost(), Lost()]

    async def test_renewals_answer_in_order(self, stage: Stage) -> None:
        a, b = await stage.hold("a"), await stage.hold("b")
        pairs = [(RunId("b"), b.token), (RunId("a"), b.token), (RunId("a"), a.token)]
        assert [type(x) for x in await stage.backend.renew(pairs)] == [Renewed, Lost, Renewed]

    async def test_a_settle_does_not_extend_the_lease(self, stage: Stage) -> None:
        claim = await stage.hold()
        await stage.pass_time(stage.backend.lease_ms - 1)
        await stage.keep(claim)
        await stage.pass_time(1)
        assert len(await stage.take()) == 1

    async def test_a_resent_claim_gets_the_same_run_renewed(self, stage: Stage) -> None:
        await stage.backend.submit(start())
        [first] = await stage.backend.claim("h.n", 1)
        await stage.pass_time(5_000)
        [second] = await stage.backend.claim("h.n", 1)
        assert second == replace(first, now_ms=stage.clock.now_ms())
        await stage.pass_time(stage.backend.lease_ms - 1)
        assert await stage.take() == []

    async def test_releasing_a_dead_process_ends_its_leases_and_keeps_them_counted(self, stage: Stage) -> None:
        claim = await stage.hold()
        holder = claim.token.nonce.partition(".")[0]
        assert await stage.backend.release(holder[:-1]) == 0
        assert await stage.backend.release(holder) == 1
        [again] = await stage.take()
        assert again.header.tries == 2
        view = await stage.backend.run(RUN)
        assert view is not None
        assert view.lost == 1

    async def test_a_dead_process_is_released_from_runs_of_any_name(self, stage: Stage) -> None:
        for name in ("a|b", "|", "a|b.1/w|x"):
            claim = await stage.hold(name)
            assert await stage.backend.release(claim.token.nonce.partition(".")[0]) == 1
            assert [c.header.run_id for c in await stage.take()] == [name]

    async def test_after_a_silence_nobody_takes_over_for_a_grace(self, stage: Stage) -> None:
        await stage.hold()
        stage.clock.advance(stage.backend.lease_ms + 1)
        assert await stage.take() == []
        assert await stage.backend.cancel(RUN) == CancelRequested()
        await stage.pass_time(stage.backend.lease_ms)
        assert await stage.take() == []
        assert await stage.status() == "cancelled"

    async def test_grace_stops_takeovers_only(self, stage: Stage) -> None:
        await stage.hold("held")
        stage.clock.advance(stage.backend.lease_ms + 1)
        await stage.backend.submit(start("fresh"))
        assert [c.header.run_id for c in await stage.take(9)] == ["fresh"]

    async def test_a_clock_that_goes_back_starts_a_grace(self, stage: Stage) -> None:
        await stage.hold()
        await stage.lease_over()
        stage.clock.advance(-1)
        assert await stage.take() == []
        stage.clock.advance(1)
        assert await stage.take() == []

    async def test_what_was_due_before_the_clock_went_back_is_still_due(self, stage: Stage) -> None:
        await stage.settle(await stage.hold("woken"), Park(None), arms=(hand(),))
        await stage.settle(await stage.hold("timed"), Park(stage.clock.now_ms() + 100), arms=(hand(),))
        await stage.backend.submit(start("early", not_before_ms=stage.clock.now_ms() + 100))
        await stage.take(queues=("nobody",))
        await stage.backend.wake(RunId("woken"), WAIT, b"1")
        stage.clock.advance(100 - DAY_MS)
        assert {c.header.run_id for c in await stage.take(9)} == {"woken", "timed"}
        assert await stage.backend.audit() == []

    async def test_a_lease_ends_in_one_lease_when_the_clock_went_back(self, stage: Stage) -> None:
        await stage.hold()
        stage.clock.advance(-DAY_MS)
        await stage.take(queues=("nobody",))
        await stage.lease_over()
        assert [c.header.run_id for c in await stage.take()] == [RUN]
