"""What every ``TaskStore`` and ``FlowStore`` must do."""

from __future__ import annotations

from typing import Literal

from plaita.ports.runs import Arm, Closing, Keep, Park, Settled
from plaita.ports.tasks import (
    AlreadyDecided,
    AlreadyVoted,
    Changed,
    Decided,
    Decision,
    NotACandidate,
    NoTask,
    Recorded,
    Task,
    TaskSpec,
    Vote,
)  # fmt: skip
from plaita.ports.values import By
from plaita.testing.conformance.stage import RUN, WAIT, Contract, Stage


def ask(*approvers: str, wait_id: str = WAIT) -> Arm:
    spec = TaskSpec("Pay?", "100 EUR", approvers, "all", ({"name": "why"},))
    return Arm(type(WAIT)(wait_id), "hand", "node", "node", deadline_ms=99, task=spec)


def vote(
    actor: str, *, outcome: Literal["approved", "rejected"] | None = None, missing: int = 0
) -> Decision:  # fmt: skip
    answer = None if outcome is None else b'{"approved":true}'
    return Decision(Vote(actor, True, "fine", {"why": 1}, 5), missing, outcome, answer)


class TaskContract(Contract):
    """A task lives as long as its wait is open."""

    async def _task(self, stage: Stage, *approvers: str, run_id: str = RUN) -> Task:
        await stage.settle(await stage.hold(run_id), Park(None), arms=(ask(*approvers),))
        tasks, _ = await stage.backend.inbox()
        return tasks[-1]

    async def test_the_settle_that_arms_the_wait_writes_the_task(self, stage: Stage) -> None:
        task = await self._task(stage, "ann", "bob")
        spec = TaskSpec("Pay?", "100 EUR", ("ann", "bob"), "all", ({"name": "why"},))
        now_ms = stage.clock.now_ms()
        assert task == Task(task.task_id, RUN, WAIT, "flow", "node", spec, "open", 0, now_ms, 99)
        assert await stage.backend.task(task.task_id) == task
        [wait] = await stage.backend.waits(RUN)
        assert wait.task_id == task.task_id

    async def test_a_vote_is_recorded_and_the_version_grows(self, stage: Stage) -> None:
        task = await self._task(stage, "ann", "bob")
        assert await stage.backend.decide(task.task_id, 0, vote("ann", missing=1)) == Recorded(1)
        again = await stage.backend.task(task.task_id)
        assert again is not None
        assert (again.version, again.status) == (1, "open")
        assert again.votes == (Vote("ann", True, "fine", {"why": 1}, 5),)

    async def test_a_deciding_vote_wakes_the_wait_in_the_same_step(self, stage: Stage) -> None:
        task = await self._task(stage, "ann")
        assert await stage.backend.decide(task.task_id, 0, vote("ann", outcome="approved")) == Decided("approved")
        [claim] = await stage.take()
        assert [m.data for m in claim.mailbox] == [b'{"approved":true}']
        [wait] = await stage.backend.waits(RUN, open_only=False)
        assert wait.by is not None
        assert (wait.by.kind, wait.by.actor) == ("hand", "ann")

    async def test_refusals_have_names_and_use_no_vote_up(self, stage: Stage) -> None:
        task = await self._task(stage, "ann", "bob")
        decide = stage.backend.decide
        assert await decide("none", 0, vote("ann")) == NoTask("none")
        assert await decide(task.task_id, 0, vote("eve")) == NotACandidate("eve", ("ann", "bob"))
        assert await decide(task.task_id, 7, vote("ann")) == Changed(0)
        assert await decide(task.task_id, 0, vote("ann", missing=1)) == Recorded(1)
        assert await decide(task.task_id, 1, vote("ann")) == AlreadyVoted("ann")
        assert await decide(task.task_id, 0, vote("bob")) == Changed(1)
        assert await decide(task.task_id, 1, vote("bob", outcome="approved")) == Decided("approved")
        assert await decide(task.task_id, 2, vote("bob", outcome="rejected")) == AlreadyDecided("decided")

    async def test_every_version_of_a_flow_is_listed_the_latest_first(self, stage: Stage) -> None:
        for version, closure in (("1", "a"), ("2", "b"), ("1", "c")):
            await stage.backend.publish_flow("f", version, closure)
        await stage.backend.publish_flow("g", "1", "d")
        assert [(v.version, v.closure) for v in await stage.backend.versions("f")] == [("1", "c"), ("2", "b")]
        assert await stage.backend.versions("none") == []

    async def test_a_task_without_approvers_admits_everybody(self, stage: Stage) -> None:
        task = await self._task(stage)
        assert await stage.backend.decide(task.task_id, 0, vote("any", outcome="approved")) == Decided("approved")

    async def test_whatever_closes_the_wait_closes_the_task(self, stage: Stage) -> None:
        timed_out = await stage.keep(await stage.hold("timeout"), ask("ann"))
        answered = await stage.keep(await stage.hold("answered"), ask("ann"))
        await stage.keep(await stage.hold("cancelled"), ask("ann"))
        tasks, _ = await stage.backend.inbox()
        assert isinstance(await stage.settle(timed_out, Keep(), closes=(Closing(WAIT, "timeout"),)), Settled)
        await stage.backend.wake(answered.header.run_id, WAIT, b"1")
        await stage.backend.cancel(type(RUN)("cancelled"))
        assert await stage.backend.inbox() == ([], "")
        for task in tasks:
            answer = await stage.backend.decide(task.task_id, 0, vote("ann", outcome="approved"))
            assert answer == AlreadyDecided("closed")
        [wait] = await stage.backend.waits(timed_out.header.run_id, open_only=False)
        assert wait.by == By("timeout")

    async def test_the_inbox_shows_open_tasks_oldest_first_page_by_page(self, stage: Stage) -> None:
        for run_id, approver in (("a", "ann"), ("b", "bob"), ("c", "ann"), ("d", "")):
            await self._task(stage, *([approver] if approver else []), run_id=run_id)
        tasks, cursor = await stage.backend.inbox(actor="ann", limit=2)
        assert [t.run_id for t in tasks] == ["a", "c"]
        rest, end = await stage.backend.inbox(actor="ann", limit=2, cursor=cursor)
        assert ([t.run_id for t in rest], end) == (["d"], "")
        everything, _ = await stage.backend.inbox()
        assert [t.run_id for t in everything] == ["a", "b", "c", "d"]


class FlowContract(Contract):
    """Definitions."""

    async def test_a_closure_is_immutable(self, stage: Stage) -> None:
        await stage.backend.put_closure("h", b"one")
        await stage.backend.put_closure("h", b"one")
        assert await stage.backend.closure("h") == b"one"
        assert await stage.backend.closure("none") is None

    async def test_the_last_published_version_is_the_latest(self, stage: Stage) -> None:
        for version, closure in (("1", "h1"), ("2", "h2"), ("1", "h3")):
            await stage.backend.publish_flow("f", version, closure)
        await stage.backend.publish_flow("e", "1", "h")
        latest, second = await stage.backend.flow("f"), await stage.backend.flow("f", "2")
        assert latest is not None
        assert second is not None
        assert (latest.version, latest.closure, second.closure) == ("1", "h3", "h2")
        assert [f.flow_id for f in await stage.backend.flows()] == ["e", "f"]
        assert await stage.backend.flow("none") is None
