"""What every ``RunStore`` must do: claims, leases, settles, ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from plaita.base.duration import DAY_MS
from plaita.base.json import decode
from plaita.ports.runs import (
    AlreadyResolved,
    Arm,
    Cancelled,
    CancelRequested,
    Claim,
    Closing,
    Deleted,
    Dup,
    End,
    HandBack,
    Keep,
    NotRetryable,
    Park,
    Reopened,
    Settled,
    Submitted,
    Tombstoned,
    WaitConflict,
    Woken,
)  # fmt: skip
from plaita.ports.values import By, Mail, RunId, WaitId
from plaita.testing.conformance.stage import RUN, WAIT, Contract, Stage, hand, start

TRIES_MAX = 5


class ClaimContract(Contract):
    """Who gets which run."""

    async def test_due_runs_go_by_priority_then_by_time(self, stage: Stage) -> None:
        for run_id, priority in (("first", 0), ("second", 0), ("urgent", 9)):
            await stage.backend.submit(start(run_id, priority=priority))
            stage.clock.advance(1)
        claims = await stage.take(2)
        assert [c.header.run_id for c in claims] == ["urgent", "first"]

    async def test_a_start_with_not_before_is_due_exactly_then(self, stage: Stage) -> None:
        await stage.backend.submit(start(not_before_ms=stage.clock.now_ms() + 500))
        stage.clock.advance(499)
        assert await stage.take() == []
        stage.clock.advance(1)
        assert len(await stage.take()) == 1

    async def test_only_named_queues_are_looked_at(self, stage: Stage) -> None:
        await stage.backend.submit(start(queue="slow"))
        assert await stage.take() == []
        assert len(await stage.take(queues=("default", "slow"))) == 1

    async def test_a_claim_bound_to_a_run_takes_it_and_its_children_only(self, stage: Stage) -> None:
        for run_id in ("a", "a.1/w", "ab", "b"):
            await stage.backend.submit(start(run_id))
        claims = await stage.take(9, only=RunId("a"))
        assert {c.header.run_id for c in claims} == {"a", "a.1/w"}

    async def test_a_run_whose_definition_cannot_be_loaded_waits_a_second_without_an_attempt(
        self, stage: Stage
    ) -> None:
        await stage.backend.submit(start())
        assert await stage.take(lacks=frozenset({"closure"})) == []
        view = await stage.backend.run(RUN)
        assert view is not None
        assert "closure" in view.blocked_reason
        assert view.due_ms == stage.clock.now_ms() + 1_000
        stage.clock.advance(1_000)
        [claim] = await stage.take()
        assert claim.header.tries == 1

    async def test_a_timer_of_a_run_whose_definition_cannot_be_loaded_waits_too(self, stage: Stage) -> None:
        deadline = stage.clock.now_ms() + 100
        arm = replace(hand(), deadline_ms=deadline)
        await stage.settle(await stage.hold(), Park(deadline), arms=(arm,))
        stage.clock.advance(200)
        assert await stage.take(lacks=frozenset({"closure"})) == []
        assert await stage.backend.audit() == []
        stage.clock.advance(1_000)
        assert len(await stage.take()) == 1

    async def test_a_run_in_its_second_fruitless_claim_goes_to_an_idle_process_alone(self, stage: Stage) -> None:
        await stage.hold("suspect")
        await stage.lease_over()
        await stage.backend.submit(start("other"))
        assert [c.header.run_id for c in await stage.take(9, alone=False)] == ["other"]
        await stage.backend.submit(start("third"))
        assert [c.header.run_id for c in await stage.take(9)] == ["suspect"]

    async def test_runs_for_idle_processes_keep_no_other_from_a_busy_one(self, stage: Stage) -> None:
        names = [f"stuck{n}" for n in range(250)]
        await asyncio.gather(*(stage.backend.submit(start(name)) for name in names))
        while await stage.take(100):
            pass
        await stage.settle(await stage.hold("moving"), Keep(), progress=True)
        await stage.lease_over()
        found: list[Claim] = []
        for _ in range(3):
            found += await stage.take(8, alone=False)
            await stage.pass_time(1_000)
        assert [claim.header.run_id for claim in found] == ["moving"]
        assert await stage.backend.audit() == []

    async def test_half_of_a_claim_is_kept_for_runs_that_nobody_held(self, stage: Stage) -> None:
        for number in range(4):
            claim = await stage.hold(f"old{number}")
            await stage.keep(claim, progress=True)
        await stage.lease_over()
        for number in range(4):
            await stage.backend.submit(start(f"new{number}"))
        taken = [c.header.run_id[:3] for c in await stage.take(4)]
        assert sorted(taken) == ["new", "new", "old", "old"]

    async def test_a_run_that_makes_no_progress_ends_after_its_budget_of_claims(self, stage: Stage) -> None:
        await stage.backend.submit(start())
        for attempt in range(TRIES_MAX):
            [claim] = await stage.take()
            assert claim.header.tries == attempt + 1
            await stage.lease_over()
        assert await stage.take() == []
        view = await stage.backend.run(RUN)
        assert view is not None
        assert view.status == "error"
        error = decode(view.error or b"{}")
        assert error == {
            "kind": "node_error",
            "code": -500,
            "message": error["message"],
            "error_type": "worker_lost",
            "path": [],
        }

    async def test_progress_gives_the_budget_back(self, stage: Stage) -> None:
        claim = await stage.hold()
        await stage.keep(claim, progress=True)
        view = await stage.backend.run(RUN)
        assert view is not None
        assert view.tries == 0

    async def test_hand_back_gives_its_claim_back_and_is_due_at_once(self, stage: Stage) -> None:
        claim = await stage.hold()
        assert await stage.settle(claim, HandBack()) == Settled(1, False, False, (), stage.clock.now_ms())
        [again] = await stage.take()
        assert (again.header.tries, again.token.generation) == (1, 2)

    async def test_a_claim_answers_what_the_run_was_started_with(self, stage: Stage) -> None:
        claim = await stage.hold(flow_version="1.2", entry="inner", imports=("app.nodes",), tenant="acme")
        h = claim.header
        assert (h.flow_id, h.flow_version, h.entry, h.imports, h.tenant) == (
            "flow",
            "1.2",
            "inner",
            ("app.nodes",),
            "acme",
        )
        assert (h.input, h.closure, h.seq) == (b'{"x":1}', "closure", 0)
        assert claim.now_ms == stage.clock.now_ms()


class SettleContract(Contract):
    """The only write of a holder."""

    async def test_a_delta_replaces_named_keys_and_removes_emptied_ones(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), delta={"a": b"1", "b": b"2"})
        await stage.keep(claim, delta={"a": None, "b": b"3", "gone": None})
        assert await stage.backend.frames(RUN) == {"b": b"3"}

    async def test_a_repeated_settle_is_answered_from_the_state_of_now(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), hand())
        step = stage.step(claim, Keep())
        await stage.backend.settle(step)
        await stage.backend.wake(RUN, WAIT, b"1")
        answer = await stage.backend.settle(step)
        assert isinstance(answer, Dup)
        assert [m.data for m in answer.mailbox] == [b"1"]

    async def test_a_park_with_mail_becomes_a_keep(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), hand())
        await stage.backend.wake(RUN, WAIT, b'"yes"', "ann")
        answer = await stage.settle(claim, Park(None))
        assert isinstance(answer, Settled)
        assert (answer.held, answer.mailbox) == (True, (Mail(1, "wake", WAIT, b'"yes"'),))
        assert await stage.status() == "running"

    async def test_a_parked_run_is_due_at_its_timer(self, stage: Stage) -> None:
        claim = await stage.hold()
        due_ms = stage.clock.now_ms() + 700
        await stage.settle(claim, Park(due_ms), arms=(hand(),))
        await stage.pass_time(699)
        assert await stage.take() == []
        await stage.pass_time(1)
        assert len(await stage.take()) == 1

    async def test_a_backoff_is_running_and_says_when_it_tries_again(self, stage: Stage) -> None:
        claim = await stage.hold()
        due_ms = stage.clock.now_ms() + 700
        await stage.settle(claim, Park(due_ms, retry_ms=due_ms))
        view = await stage.backend.run(RUN)
        assert view is not None
        assert (view.status, view.retry_ms, view.token) == ("running", due_ms, None)

    async def test_a_conflict_writes_nothing_and_does_not_use_the_number_up(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), hand())
        await stage.backend.wake(RUN, WAIT, b"1")
        timed_out = await stage.settle(claim, Keep(), closes=(Closing(WAIT, "timeout"),), delta={"a": b"1"})
        assert timed_out == WaitConflict(WAIT)
        assert await stage.backend.frames(RUN) == {}
        again = await stage.backend.reload(RUN, claim.token)
        assert isinstance(again, Claim)
        assert [m.data for m in again.mailbox] == [b"1"]
        assert isinstance(await stage.settle(again, Keep(), closes=(Closing(WAIT, "read"),), ack=1), Settled)

    async def test_the_caller_of_a_wake_after_a_timeout_is_told_so(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), hand())
        await stage.settle(claim, Keep(), closes=(Closing(WAIT, "timeout"),))
        assert await stage.backend.wake(RUN, WAIT, b"1") == AlreadyResolved(By("timeout"))

    async def test_a_close_by_reading_is_refused_while_the_answer_is_beyond_what_was_read(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), hand())
        await stage.backend.wake(RUN, WAIT, b"1")
        assert await stage.settle(claim, Keep(), closes=(Closing(WAIT, "read"),)) == WaitConflict(WAIT)
        await stage.keep(claim, closes=(Closing(WAIT, "read"),), ack=1)

    async def test_an_end_is_refused_while_an_answer_is_unread(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), hand())
        await stage.backend.wake(RUN, WAIT, b"1")
        assert await stage.settle(claim, End("completed")) == WaitConflict(WAIT)

    async def test_a_promised_cancel_wins_over_the_end(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), hand())
        assert await stage.backend.cancel(RUN, "ann") == CancelRequested()
        answer = await stage.settle(claim, End("completed", b"1"), history=(b'{"event":"result"}',))
        assert answer == Settled(2, False, True, (), stage.clock.now_ms())
        assert await stage.status() == "cancelled"
        assert b'{"event":"result"}' in await stage.events()

    async def test_a_completed_run_drops_its_frames_a_failed_one_keeps_them(self, stage: Stage) -> None:
        for run_id, end in (("good", End("completed", b"1")), ("bad", End("error", error=b"{}"))):
            claim = await stage.keep(await stage.hold(run_id), delta={"a": b"1"})
            await stage.settle(claim, end, delta={"b": b"2"})
        assert await stage.backend.frames(RunId("good")) == {}
        assert await stage.backend.frames(RunId("bad")) == {"a": b"1", "b": b"2"}

    async def test_history_numbers_grow_across_attempts_and_name_every_turn(self, stage: Stage) -> None:
        claim = await stage.hold()
        await stage.settle(claim, Park(None), arms=(hand(),), history=(b'{"event":"mine"}',))
        await stage.backend.wake(RUN, WAIT, b"1", "ann")
        [claim] = await stage.take()
        await stage.settle(claim, End("completed"), closes=(Closing(WAIT, "read"),), ack=1)
        entries = await stage.backend.history(RUN)
        assert [e.seq for e in entries] == list(range(1, len(entries) + 1))
        names = [decode(e.data)["event"] for e in entries]
        assert names == ["submitted", "claimed", "mine", "wait_resolved", "claimed", "run_ended"]
        assert await stage.backend.history(RUN, after=4, limit=1) == entries[4:5]

    async def test_a_close_is_told_once_before_what_follows_from_it_and_a_cut_behind_what_cut_it(
        self, stage: Stage
    ) -> None:
        late, left = Arm(WaitId("late"), "hand", "n", "l:2/n"), Arm(WaitId("left"), "hand", "m", "m")
        claim = await stage.keep(await stage.hold(), late, left)
        closes = (Closing(left.wait_id, "cut"), Closing(late.wait_id, "timeout"))
        await stage.settle(claim, Keep(), closes=closes, history=(b'{"event":"mine"}',))
        assert [decode(data) for data in await stage.events()][2:] == [
            {"event": "wait_closed", "wait": "late", "node": "l:2/n", "by": {"kind": "timeout"}},
            {"event": "mine"},
            {"event": "wait_closed", "wait": "left", "node": "m", "by": {"kind": "cut"}},
        ]

    async def test_an_answer_names_the_place_of_its_wait(self, stage: Stage) -> None:
        await stage.settle(await stage.hold(), Park(None), arms=(Arm(WAIT, "hand", "n", "l:2/n"),))
        await stage.backend.wake(RUN, WAIT, b"1", "ann")
        assert decode((await stage.events())[-1]) == {
            "event": "wait_resolved", "wait": WAIT, "node": "l:2/n", "by": {"kind": "hand", "actor": "ann"}
        }  # fmt: skip

    async def test_a_reused_wait_id_is_a_mistake_of_the_holder_and_writes_nothing(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), hand())
        try:
            await stage.settle(claim, Keep(), arms=(hand("other"), hand()))
        except ValueError as error:
            assert WAIT in str(error)
        assert await stage.waits() == {WAIT: "open"}
        assert isinstance(await stage.settle(claim, Keep()), Settled)


class LifeContract(Contract):
    """Before the first claim and after the end."""

    async def test_a_deleted_id_refuses_starts_until_its_tombstone_expires_and_then_goes_on_counting(
        self, stage: Stage
    ) -> None:
        claim = await stage.hold()
        await stage.settle(claim, End("completed"))
        assert await stage.backend.delete(RUN) == Deleted(RUN)
        assert await stage.backend.submit(start()) == Tombstoned(RUN)
        stage.clock.advance(30 * DAY_MS)
        again = await stage.hold()
        assert again.token.generation == claim.token.generation + 1
        assert again.token.incarnation != claim.token.incarnation

    async def test_prune_removes_runs_that_ended_before_a_time_and_no_others(self, stage: Stage) -> None:
        await stage.settle(await stage.hold("old"), End("completed"))
        stage.clock.advance(1_000)
        limit_ms = stage.clock.now_ms()
        await stage.settle(await stage.hold("new"), End("completed"))
        await stage.hold("live")
        assert await stage.backend.prune(limit_ms) == 1
        runs, _ = await stage.backend.runs()
        assert [r.run_id for r in runs] == ["live", "new"]

    async def test_a_reopened_run_keeps_its_frames_and_gets_a_new_budget(self, stage: Stage) -> None:
        claim = await stage.keep(await stage.hold(), delta={"a": b"1"})
        await stage.settle(claim, End("error", error=b'{"code":1}'))
        assert await stage.backend.reopen(RUN) == Reopened(RUN)
        view = await stage.backend.run(RUN)
        assert view is not None
        assert (view.status, view.error, view.ended_ms, view.tries) == ("running", None, None, 0)
        [again] = await stage.take()
        assert again.token.generation == claim.token.generation + 1
        assert await stage.backend.frames(RUN) == {"a": b"1"}
        assert b'"error":{"code":1}' in b"".join(await stage.events())

    async def test_reopening_is_refused_by_name_when_its_budget_is_spent(self, stage: Stage) -> None:
        claim = await stage.hold()
        for _ in range(12):
            await stage.settle(claim, End("error", error=b"{}"))
            assert await stage.backend.reopen(RUN) == Reopened(RUN)
            [claim] = await stage.take()
        await stage.settle(claim, End("error", error=b"{}"))
        assert await stage.backend.reopen(RUN) == NotRetryable("deterministic_failures")

    async def test_cancel_reaches_a_delayed_start(self, stage: Stage) -> None:
        await stage.backend.submit(start(not_before_ms=stage.clock.now_ms() + DAY_MS))
        assert await stage.backend.cancel(RUN) == Cancelled()
        assert await stage.status() == "cancelled"

    async def test_a_submission_names_the_incarnation_it_made(self, stage: Stage) -> None:
        first = await stage.backend.submit(start())
        again = await stage.backend.submit(start())
        assert isinstance(first, Submitted)
        assert isinstance(again, Submitted)
        assert (first.incarnation, again.deduplicated) == (again.incarnation, True)

    async def test_a_wake_makes_a_parked_run_due_at_once(self, stage: Stage) -> None:
        await stage.settle(await stage.hold(), Park(None), arms=(hand(), hand("v")))
        assert await stage.backend.wake(RUN, WaitId("v"), b'"a"') == Woken(RUN)
        [claim] = await stage.take()
        assert claim.mailbox == (Mail(1, "wake", WaitId("v"), b'"a"'),)
