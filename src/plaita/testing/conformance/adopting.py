"""What every ``RunStore`` must do with a run that began elsewhere."""

from __future__ import annotations

from plaita.base.json import decode
from plaita.ports.runs import Adopted, Adoption, End, Park, SubmitConflict, Tombstoned, Woken
from plaita.ports.values import RunId
from plaita.testing.conformance.stage import INPUT, RUN, WAIT, Contract, Stage, hand, start

FRAMES = {"h": b"[1]", "f": b"[2]"}


class AdoptContract(Contract):
    """A run is created in the state that somebody else kept; nothing of it is ever seen half."""

    async def test_an_adopted_run_under_way_is_due_and_goes_on_from_its_frames(self, stage: Stage) -> None:
        now = stage.clock.now_ms()
        assert isinstance(await stage.backend.adopt(start(), Adoption(FRAMES, Park(now))), Adopted)
        assert await stage.backend.frames(RUN) == FRAMES
        assert await stage.backend.input(RUN) == INPUT
        [claim] = await stage.take()
        assert (claim.header.seq, claim.header.tries) == (1, 1)

    async def test_an_adopted_run_that_waits_is_woken_by_its_answer(self, stage: Stage) -> None:
        await stage.backend.adopt(start(), Adoption(FRAMES, Park(None), (hand(),)))
        assert (await stage.status(), await stage.take()) == ("suspended", [])
        assert isinstance(await stage.backend.wake(RUN, WAIT, b"1"), Woken)
        [claim] = await stage.take()
        assert [m.data for m in claim.mailbox] == [b"1"]

    async def test_an_adopted_run_with_a_timer_is_due_exactly_then(self, stage: Stage) -> None:
        at_ms = stage.clock.now_ms() + 500
        await stage.backend.adopt(start(), Adoption(FRAMES, Park(at_ms), (hand(),)))
        await stage.pass_time(499)
        assert await stage.take() == []
        await stage.pass_time(1)
        assert len(await stage.take()) == 1

    async def test_an_adopted_run_that_failed_keeps_its_frames_for_a_retry(self, stage: Stage) -> None:
        await stage.backend.adopt(start(), Adoption(FRAMES, End("error", error=b'{"code":1}')))
        view = await stage.backend.run(RUN)
        assert view is not None and (view.status, decode(view.error or b"null")) == ("error", {"code": 1})
        assert await stage.backend.frames(RUN) == FRAMES

    async def test_an_adopted_run_that_ended_is_ended(self, stage: Stage) -> None:
        await stage.backend.adopt(start(), Adoption({}, End("completed", output=b"2")))
        view = await stage.backend.run(RUN)
        assert view is not None and (view.status, view.output, view.due_ms) == ("completed", b"2", None)

    async def test_an_id_that_exists_or_existed_is_not_adopted(self, stage: Stage) -> None:
        await stage.backend.submit(start())
        ended = Adoption({}, End("cancelled"))
        assert isinstance(await stage.backend.adopt(start(), ended), SubmitConflict)
        assert await stage.status() == "queued"
        await stage.backend.cancel(RUN)
        await stage.backend.delete(RUN)
        assert isinstance(await stage.backend.adopt(start(), ended), Tombstoned)

    async def test_a_state_that_nobody_would_look_at_is_refused_whole(self, stage: Stage) -> None:
        try:
            await stage.backend.adopt(start(), Adoption(FRAMES, Park(None)))
        except ValueError:
            assert await stage.backend.run(RUN) is None
            assert await stage.backend.audit() == []
        else:
            raise AssertionError("it was accepted")

    async def test_the_input_of_a_run_that_is_not_there_is_none(self, stage: Stage) -> None:
        assert await stage.backend.input(RunId("nobody")) is None
