"""Messages for executions that exist: what they are bound to, and what ends a wait."""

from __future__ import annotations

import pytest

from plaita.base.json import encode
from plaita.ports.inbox import Passed, Resumed, Retried
from plaita.ports.runs import Closing, End, Keep, NotRetryable, Park, Settled, WaitConflict, Woken
from plaita.ports.values import Mail, WaitId
from plaita.testing.conformance.inbox import Body, send, word
from plaita.testing.conformance.stage import RUN, WAIT, Contract, Stage, hand, listen

TIMEOUT: Body = {"type": "resume", "resume_type": "timeout", "execution_id": RUN}


def named(event_type: str, kind: str = "timeout") -> Body:
    """A message for the wait, and the type of event it is said to wait for."""
    return {**TIMEOUT, "resume_type": kind, "data": {"subscription_id": WAIT, "event_type": event_type}}


class ResumeMessageContract(Contract):
    """A message reaches the wait it names, or nothing."""

    async def test_a_timeout_asks_the_holder_to_let_the_wait_be_over(self, stage: Stage) -> None:
        await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
        assert await send(stage, named("")) == Resumed(Woken(RUN))
        [claim] = await stage.take()
        assert claim.mailbox == (Mail(1, "timeout", WAIT, b"null"),)
        assert await stage.waits() == {WAIT: "open"}

    async def test_a_wait_is_asked_once_to_be_over(self, stage: Stage) -> None:
        await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
        for message_id in ("m1", "m2"):
            assert await send(stage, named(""), message_id) == Resumed(Woken(RUN))
        [claim] = await stage.take()
        assert len(claim.mailbox) == 1

    async def test_a_wait_that_is_asked_to_be_over_is_closed_as_at_its_deadline(self, stage: Stage) -> None:
        await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
        await send(stage, named(""))
        [claim] = await stage.take()
        answer = await stage.settle(claim, End("completed", b"1"), closes=(Closing(WAIT, "timeout"),), ack=1)
        assert isinstance(answer, Settled)
        [wait] = await stage.backend.waits(RUN, open_only=False)
        assert (wait.state, wait.by and wait.by.kind) == ("closed", "timeout")

    async def test_what_was_published_before_a_wait_is_over_reaches_it(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), listen())
        await send(stage, named("pay"))
        await stage.backend.publish("e", "pay", "k", b"1")
        closing = (Closing(WAIT, "timeout"),)
        assert await stage.settle(claim, Keep(), closes=closing, ack=1) == WaitConflict(WAIT)

    async def test_an_answer_overtakes_the_request_to_be_over(self, stage: Stage) -> None:
        await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
        await send(stage, named(""))
        assert await stage.backend.wake(RUN, WAIT, b'"yes"') == Woken(RUN)
        assert word(await send(stage, named(""))) == "AlreadyResolved"

    async def test_a_run_parks_again_when_the_request_was_for_nothing(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), hand(), hand("v"))
        await send(stage, {**TIMEOUT, "wait_id": "v"})
        claim = await stage.keep(claim, closes=(Closing(WaitId("v"), "cut"),), ack=0)
        answer = await stage.settle(claim, Park(None), ack=1)
        assert isinstance(answer, Settled)
        assert (answer.held, await stage.status(), await stage.backend.audit()) == (False, "suspended", [])

    @pytest.mark.parametrize("kind", ["timeout", "event"])
    async def test_a_message_for_another_type_of_event_leaves_the_wait_alone(self, stage: Stage, kind: str) -> None:
        await stage.settle(await stage.hold(), Park(None), arms=(listen(),))
        before = await stage.backend.run(RUN)
        assert await send(stage, named("refund", kind)) == Passed("not_bound")
        assert (await stage.backend.run(RUN), await stage.waits()) == (before, {WAIT: "open"})
        assert word(await send(stage, named("pay", kind))) == "Woken"

    @pytest.mark.parametrize("kind", ["continue", "retry"])
    async def test_a_run_in_backoff_needs_nobody_to_go_on(self, stage: Stage, kind: str) -> None:
        due_ms = stage.clock.now_ms() + 60_000
        await stage.settle(await stage.hold(), Park(due_ms, retry_ms=due_ms))
        assert await send(stage, {**TIMEOUT, "resume_type": kind}) == Passed("goes_on")
        assert await stage.take() == []

    async def test_a_retry_is_refused_by_name_when_its_budget_is_spent(self, stage: Stage) -> None:
        claim = await stage.hold()
        for number in range(12):
            await stage.settle(claim, End("error", error=b"{}"))
            assert word(await send(stage, {**TIMEOUT, "resume_type": "retry"}, f"m{number}")) == "Reopened"
            [claim] = await stage.take()
        await stage.settle(claim, End("error", error=b"{}"))
        before = (await stage.backend.run(RUN), await stage.events())
        answer = await send(stage, {**TIMEOUT, "resume_type": "retry"})
        assert answer == Retried(NotRetryable("deterministic_failures"))
        assert (await stage.backend.run(RUN), await stage.events()) == before

    async def test_a_documented_timeout_says_more_than_it_needs(self, stage: Stage) -> None:
        await stage.settle(await stage.hold(), Park(None), arms=(listen(),))
        data = {"subscription_id": WAIT, "event_type": "pay", "node_id": "node"}
        body = {**TIMEOUT, "flow_id": "flow", "tenant_id": "default", "data": data}
        await stage.backend.offer("m", encode(body))
        [accepted] = await stage.backend.accept(1)
        assert word(accepted.outcome) == "Woken"
