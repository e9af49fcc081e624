"""What every store must do about runs that wait for runs."""

from __future__ import annotations

from plaita.base.json import decode
from plaita.ports.runs import Arm, Claim, Closing, End, Keep, Park, Spawn
from plaita.ports.values import Parent, RunId, WaitId
from plaita.testing.conformance.stage import RUN, WAIT, Contract, Stage, start

CHILD = RunId("r.child")


class ChildContract(Contract):
    """Spawns, their answers and their cancels travel through the outbox; a claim carries it on."""

    async def _spawn(self, stage: Stage) -> Claim:
        return await self._spawn_from(stage, await stage.hold())

    async def _spawn_from(self, stage: Stage, parent: Claim) -> Claim:
        arm = Arm(WAIT, "child", "node", "node")
        return await stage.keep(parent, arm, spawns=(Spawn(start(CHILD), WAIT),))

    async def _run_child(self, stage: Stage) -> Claim:
        [child] = await stage.take(only=CHILD)
        return child

    async def _answer(self, stage: Stage) -> dict[str, object]:
        await stage.take()
        [claim] = await stage.backend.claim(await self._nonce(stage), 1)
        answer: dict[str, object] = decode(claim.mailbox[0].data)
        return answer

    async def _nonce(self, stage: Stage) -> str:
        view = await stage.backend.run(RUN)
        assert view is not None
        assert view.token is not None
        return view.token.nonce

    async def test_a_child_is_started_under_its_parent(self, stage: Stage) -> None:
        parent = await self._spawn(stage)
        child = await self._run_child(stage)
        view = await stage.backend.run(CHILD)
        assert view is not None
        assert (child.header.run_id, view.parent) == (CHILD, parent.header.run_id)

    async def test_a_parent_is_told_how_its_child_ended(self, stage: Stage) -> None:
        await self._spawn(stage)
        child = await self._run_child(stage)
        await stage.settle(child, End("completed", b'{"a":1}'))
        assert await self._answer(stage) == {
            "run_id": CHILD, "status": "completed", "output": {"a": 1}, "error": None,
        }  # fmt: skip

    async def test_a_parent_is_told_of_a_cancelled_child(self, stage: Stage) -> None:
        await self._spawn(stage)
        await self._run_child(stage)
        await stage.backend.cancel(CHILD)
        await stage.lease_over()
        await stage.backend.renew([])
        await stage.take(queues=("nobody",))
        await stage.backend.claim("z.z", 1, only=CHILD)
        await stage.take(queues=("nobody",))
        assert await stage.status(CHILD) == "cancelled"
        assert (await stage.waits())[WAIT] == "resolved"

    async def test_a_child_that_may_not_start_is_answered_for(self, stage: Stage) -> None:
        await stage.settle(await stage.hold(CHILD), End("completed"))
        await stage.backend.delete(CHILD)
        await self._spawn(stage)
        assert (await self._answer(stage))["status"] == "tombstoned"

    async def test_a_child_under_an_id_with_another_payload_is_answered_for(self, stage: Stage) -> None:
        parent = await stage.hold()
        await stage.backend.submit(start(CHILD, digest="another"))
        await self._spawn_from(stage, parent)
        assert (await self._answer(stage))["status"] == "conflict"

    async def test_a_child_nobody_waits_for_any_more_is_cancelled(self, stage: Stage) -> None:
        parent = await self._spawn(stage)
        await stage.take(queues=("nobody",))
        assert await stage.status(CHILD) == "queued"
        await stage.keep(parent, closes=(Closing(WAIT, "cut"),))
        await stage.take(queues=("nobody",))
        assert await stage.status(CHILD) == "cancelled"

    async def test_cancelling_a_parent_cancels_its_children(self, stage: Stage) -> None:
        parent = await self._spawn(stage)
        await stage.take(queues=("nobody",))
        await stage.settle(parent, Park(None))
        await stage.backend.cancel(RUN)
        await stage.take(queues=("nobody",))
        assert await stage.status(CHILD) == "cancelled"

    async def test_a_spawn_whose_wait_is_gone_starts_nothing(self, stage: Stage) -> None:
        parent = await self._spawn(stage)
        await stage.keep(parent, closes=(Closing(WAIT, "timeout"),))
        await stage.take(queues=("nobody",))
        await stage.take(queues=("nobody",))
        assert await stage.backend.run(CHILD) is None

    async def test_another_incarnation_of_the_parent_is_not_told(self, stage: Stage) -> None:
        parent = Parent(RUN, "another", WaitId(WAIT))
        await self._spawn(stage)
        await stage.backend.submit(start("orphan", parent=parent))
        [child] = await stage.take(only=RunId("orphan"))
        await stage.settle(child, End("completed"))
        await stage.take(queues=("nobody",))
        assert (await stage.waits())[WAIT] == "open"

    async def test_a_detached_child_lives_on_its_own(self, stage: Stage) -> None:
        claim = await stage.hold()
        await stage.settle(claim, End("completed"), spawns=(Spawn(start("free", tags=("t",)), None),))
        [child] = await stage.take(only=RunId("free"))
        view = await stage.backend.run(RunId("free"))
        assert view is not None
        assert (child.header.run_id, view.parent, view.tags) == ("free", None, ("t",))
        await stage.settle(child, Keep())
