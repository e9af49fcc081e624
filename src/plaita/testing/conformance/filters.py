"""What every ``EventStore`` must do for waits whose filter the machine judges."""

from __future__ import annotations

from dataclasses import replace

from plaita.ports.runs import Claim, Closing, Keep, Renewed, Settled, WaitConflict
from plaita.ports.values import By, Mail, RunId, Token, WaitId
from plaita.testing.conformance.stage import RUN, WAIT, Contract, Stage, listen

W2 = WaitId("w2")


def lease_of(claim: Claim) -> tuple[RunId, Token]:
    return claim.header.run_id, claim.token


class FilterContract(Contract):
    """Each event of its window is on offer once to each wait that nothing has answered, in the order of the events."""

    async def test_refusing_a_reused_event_does_not_free_it_for_others(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), listen(), listen(W2, reuse=True, by_filter=True))
        await stage.backend.publish("e", "pay", "k", b"{}")
        claim = await stage.keep(claim, closes=(Closing(WAIT, "read"),), ack=2)
        claim = await stage.keep(claim, listen("w3"))
        assert claim.mailbox == ()

    async def test_a_filter_wait_gets_candidates_one_at_a_time(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), listen(by_filter=True))
        one = await stage.backend.publish("e1", "pay", "k", b"1")
        two = await stage.backend.publish("e2", "pay", "k", b"2")
        assert (one.matched, one.woken, two.matched) == (1, 0, 0)
        answer = await stage.settle(claim, Keep(), ack=1)
        assert isinstance(answer, Settled)
        assert answer.mailbox == (Mail(2, "candidate", WAIT, b"2", two.number),)

    async def test_an_accepted_candidate_closes_its_wait(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), listen(by_filter=True))
        event = await stage.backend.publish("e", "pay", "k", b"1")
        await stage.keep(claim, closes=(Closing(WAIT, "event", event.number),), ack=1)
        [wait] = await stage.backend.waits(RUN, open_only=False)
        assert (wait.state, wait.by) == ("closed", By("event", event=event.number))

    async def test_a_refused_candidate_is_free_for_another_wait_of_the_run(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), listen(by_filter=True), listen(W2))
        await stage.backend.publish("e", "pay", "k", b"1")
        await stage.keep(claim, ack=1)
        assert await stage.waits() == {WAIT: "open", W2: "resolved"}

    async def test_every_filter_judges_every_event_whoever_refuses_first(self, stage: Stage) -> None:
        waits = (WAIT, W2, WaitId("w3"))
        claim = await stage.keep(await stage.hold(), *(listen(wait, by_filter=True) for wait in waits))
        numbers = [(await stage.backend.publish(f"e{n}", "pay", "k", b"{}")).number for n in range(4)]
        [renewed] = await stage.backend.renew([lease_of(claim)])
        assert isinstance(renewed, Renewed)
        claim = replace(claim, mailbox=renewed.mailbox)
        judged: list[tuple[WaitId, int]] = []
        while claim.mailbox:
            judged += [(mail.wait_id, mail.event) for mail in claim.mailbox]
            claim = await stage.keep(claim, ack=claim.mailbox[-1].number)
        assert sorted(judged) == sorted((wait, number) for wait in waits for number in numbers)

    async def test_when_a_filter_takes_an_event_the_others_judge_the_next(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), listen(by_filter=True), listen(W2, by_filter=True))
        one = await stage.backend.publish("e1", "pay", "k", b"1")
        two = await stage.backend.publish("e2", "pay", "k", b"2")
        claim = await stage.keep(claim, closes=(Closing(WAIT, "event", one.number),), ack=1)
        assert [(mail.wait_id, mail.event) for mail in claim.mailbox] == [(W2, two.number)]

    async def test_a_timeout_loses_to_an_event_that_another_filter_refuses(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), listen(by_filter=True), listen(W2, by_filter=True))
        event = await stage.backend.publish("e", "pay", "k", b"1")
        late = (Closing(W2, "timeout"),)
        assert await stage.settle(claim, Keep(), closes=late) == WaitConflict(W2)
        assert await stage.settle(claim, Keep(), closes=late, ack=1) == WaitConflict(W2)
        again = await stage.backend.reload(*lease_of(claim))
        assert isinstance(again, Claim)
        assert [(mail.wait_id, mail.event) for mail in again.mailbox] == [(W2, event.number)]
        await stage.keep(claim, closes=late, ack=again.mailbox[-1].number)
        assert await stage.waits() == {WAIT: "open", W2: "closed"}

    async def test_a_wake_by_hand_overtakes_a_candidate(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), listen(by_filter=True))
        await stage.backend.publish("e", "pay", "k", b"1")
        await stage.backend.wake(RUN, WAIT, b'"hand"')
        assert [m.data for m in (await stage.keep(claim)).mailbox] == [b'"hand"']
