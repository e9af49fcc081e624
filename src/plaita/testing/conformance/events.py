"""What every ``EventStore`` must do: numbers, windows, candidates."""

from __future__ import annotations

from plaita.ports.runs import Arm, Claim, Closing, Keep, Park, Settled, WaitConflict
from plaita.ports.values import Mail, RunId, WaitId
from plaita.testing.conformance.stage import RUN, WAIT, Contract, Stage, hand, listen

W2 = WaitId("w2")
CROWD = 330
"""More than an event reaches in two steps."""


class EventContract(Contract):
    """An event resolves at most one wait of a run, inside the wait's window."""

    async def _park(self, stage: Stage, *arms: Arm, run_id: str = RUN) -> None:
        assert isinstance(await stage.settle(await stage.hold(run_id), Park(None), arms=arms), Settled)

    async def test_an_event_is_published_once(self, stage: Stage) -> None:
        await self._park(stage, listen())
        first = await stage.backend.publish("e", "pay", "k", b'{"n":1}')
        assert (first.matched, first.woken, first.pending, first.duplicate) == (1, 1, False, False)
        again = await stage.backend.publish("e", "pay", "k", b'{"n":2}')
        assert (again.number, again.woken, again.duplicate) == (first.number, 1, True)
        [claim] = await stage.take()
        assert claim.mailbox == (Mail(1, "wake", WAIT, b'{"n":1}', first.number),)

    async def test_type_and_key_must_fit(self, stage: Stage) -> None:
        await self._park(stage, listen())
        for event_id, event_type, key in (("a", "other", "k"), ("b", "pay", "x"), ("c", "pay", None)):
            assert (await stage.backend.publish(event_id, event_type, key, b"{}")).matched == 0
        assert await stage.waits() == {WAIT: "open"}

    async def test_an_uncorrelated_wait_takes_any_key(self, stage: Stage) -> None:
        await self._park(stage, listen(key=None))
        assert (await stage.backend.publish("e", "pay", "any", b"{}")).woken == 1

    async def test_every_waiting_run_gets_the_event(self, stage: Stage) -> None:
        for run_id in ("a", "b", "c"):
            await self._park(stage, listen(), run_id=run_id)
        assert (await stage.backend.publish("e", "pay", "k", b"{}")).woken == 3
        assert {c.header.run_id for c in await stage.take(9)} == {"a", "b", "c"}

    async def test_a_correlated_wait_sees_events_since_its_run_was_submitted(self, stage: Stage) -> None:
        await stage.backend.publish("before", "pay", "k", b'"before"')
        claim = await stage.hold()
        await stage.backend.publish("since", "pay", "k", b'"since"')
        claim = await stage.keep(claim, listen())
        assert [m.data for m in claim.mailbox] == [b'"since"']

    async def test_an_uncorrelated_wait_sees_events_since_it_was_armed(self, stage: Stage) -> None:
        claim = await stage.hold()
        await stage.backend.publish("early", "pay", "k", b"{}")
        claim = await stage.keep(claim, listen(key=None))
        assert claim.mailbox == ()
        assert (await stage.backend.publish("late", "pay", "k", b"{}")).woken == 1

    async def test_one_event_resolves_one_wait_the_first_armed(self, stage: Stage) -> None:
        await self._park(stage, listen(), listen(W2))
        await stage.backend.publish("e1", "pay", "k", b"{}")
        assert await stage.waits() == {WAIT: "resolved", W2: "open"}
        await stage.backend.publish("e1", "pay", "k", b"{}")
        assert await stage.waits() == {WAIT: "resolved", W2: "open"}
        await stage.backend.publish("e2", "pay", "k", b"{}")
        assert await stage.waits() == {WAIT: "resolved", W2: "resolved"}

    async def test_a_wait_that_may_reuse_takes_an_event_another_wait_took(self, stage: Stage) -> None:
        await self._park(stage, listen(), listen(W2, reuse=True))
        await stage.backend.publish("e", "pay", "k", b"{}")
        assert await stage.waits() == {WAIT: "resolved", W2: "resolved"}

    async def test_a_timeout_decided_before_the_event_arrived_loses_to_it(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), listen())
        await stage.backend.publish("e", "pay", "k", b"1")
        assert await stage.settle(claim, Keep(), closes=(Closing(WAIT, "timeout"),)) == WaitConflict(WAIT)

    async def test_a_fan_out_beyond_the_first_chunk_is_carried_on_by_claims(self, stage: Stage) -> None:
        for number in range(CROWD):
            await self._park(stage, listen(), run_id=f"r{number}")
        first = await stage.backend.publish("e", "pay", "k", b"{}")
        assert first.pending
        assert 0 < first.woken < CROWD
        woken = 0
        while claims := await stage.take(50):
            woken += len(claims)
        assert woken == CROWD
        assert not (await stage.backend.publish("e", "pay", "k", b"{}")).pending

    async def test_what_a_later_chunk_reached_is_shown_as_of_then(self, stage: Stage) -> None:
        for number in range(CROWD):
            await self._park(stage, listen(), run_id=f"r{number}")
        reached = await self._reach(stage, "e")
        await stage.pass_time(5_000)
        for run_id in ("r0", f"r{CROWD - 1}"):
            assert await stage.waits(run_id) == {WAIT: "resolved"}
            run = await stage.backend.run(RunId(run_id))
            assert run is not None
            assert run.due_ms == reached
            resolved = (await stage.backend.history(RunId(run_id)))[-1]
            assert (resolved.at_ms, b"wait_resolved" in resolved.data) == (reached, True)
        assert await stage.backend.audit() == []

    async def test_what_a_later_chunk_reached_is_in_the_history_before_anybody_looks_at_the_run(
        self, stage: Stage
    ) -> None:
        for number in range(CROWD):
            await self._park(stage, listen(), run_id=f"r{number}")
        await self._reach(stage, "e")
        assert b"wait_resolved" in (await stage.backend.history(RunId(f"r{CROWD - 1}")))[-1].data

    async def test_a_later_event_does_not_set_back_what_an_earlier_one_made_due(self, stage: Stage) -> None:
        for number in range(CROWD):
            await self._park(stage, listen(by_filter=True), run_id=f"r{number}")
        reached = await self._reach(stage, "e")
        await stage.pass_time(5_000)
        await self._reach(stage, "f")
        run = await stage.backend.run(RunId(f"r{CROWD - 1}"))
        assert run is not None
        assert run.due_ms == reached

    async def _reach(self, stage: Stage, event_id: str) -> int:
        """Give an event to all who wait; answers the time."""
        await stage.backend.publish(event_id, "pay", "k", b"{}")
        while await stage.backend.carry_on(1):
            pass
        return stage.clock.now_ms()

    async def test_a_timeout_loses_to_an_event_that_the_fan_out_has_not_brought_yet(self, stage: Stage) -> None:
        for number in range(200):
            await self._park(stage, listen(), run_id=f"r{number}")
        claim = await stage.keep(await stage.hold("late"), listen())
        event = await stage.backend.publish("e", "pay", "k", b'"paid"')
        assert event.pending
        assert await stage.waits("late") == {WAIT: "open"}
        assert await stage.settle(claim, Keep(), closes=(Closing(WAIT, "timeout"),)) == WaitConflict(WAIT)
        again = await stage.backend.reload(claim.header.run_id, claim.token)
        assert isinstance(again, Claim)
        assert again.mailbox == (Mail(1, "wake", WAIT, b'"paid"', event.number),)

    async def test_a_cancelled_wait_gets_nothing(self, stage: Stage) -> None:
        await stage.keep(await stage.hold(), listen(), hand(W2))
        await stage.backend.cancel(RunId(RUN))
        assert (await stage.backend.publish("e", "pay", "k", b"{}")).matched == 0
