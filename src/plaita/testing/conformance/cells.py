"""Every cell of the protocol's tables: what each verb answers in each state of a run, and of a wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from plaita.ports.runs import (
    Block,
    Claim,
    Closing,
    Dup,
    End,
    Keep,
    Park,
    SettleAnswer,
    Settled,
    Step,
    Submitted,
)  # fmt: skip
from plaita.ports.values import RunId, Token, WaitId
from plaita.testing.conformance.stage import RUN, WAIT, Contract, Stage, hand, listen, start

NOBODY = Token("nobody.nonce", 1, "none")


@dataclass(frozen=True)
class Scene:
    """A run brought into a state, with the claim and the step that brought it there."""

    stage: Stage
    claim: Claim | None = None
    last: Step | None = None

    @property
    def token(self) -> Token:
        return self.claim.token if self.claim is not None else NOBODY

    def following(self, seq: int, token: Token | None = None) -> Step:
        return Step(RUN, token or self.token, seq, "next", {}, Keep())

    @property
    def seq(self) -> int:
        return self.last.seq if self.last is not None else 0


async def _queued(stage: Stage) -> Scene:
    await stage.backend.submit(start())
    return Scene(stage)


async def _settled(stage: Stage, following: Keep | Park | Block | End, *, waiting: bool = True) -> Scene:
    claim = await stage.hold()
    step = stage.step(claim, following, arms=(hand(),) if waiting else (), progress=True)
    assert isinstance(await stage.backend.settle(step), Settled)
    return Scene(stage, claim, step)


async def _held(stage: Stage) -> Scene:
    return await _settled(stage, Keep())


async def _held_cancelled(stage: Stage) -> Scene:
    scene = await _held(stage)
    await stage.backend.cancel(RUN)
    return scene


async def _held_over(stage: Stage) -> Scene:
    scene = await _held(stage)
    await stage.lease_over()
    return scene


async def _held_over_cancelled(stage: Stage) -> Scene:
    scene = await _held_cancelled(stage)
    await stage.lease_over()
    return scene


async def _suspended(stage: Stage) -> Scene:
    return await _settled(stage, Park(None))


async def _suspended_due(stage: Stage) -> Scene:
    return await _settled(stage, Park(stage.clock.now_ms()))


async def _backoff(stage: Stage) -> Scene:
    due_ms = stage.clock.now_ms() + 60_000
    return await _settled(stage, Park(due_ms, retry_ms=due_ms), waiting=False)


async def _blocked(stage: Stage) -> Scene:
    return await _settled(stage, Block("in doubt"))


async def _completed(stage: Stage) -> Scene:
    return await _settled(stage, End("completed", b"1"), waiting=False)


async def _failed(stage: Stage) -> Scene:
    return await _settled(stage, End("error", error=b"{}"), waiting=False)


async def _cancelled(stage: Stage) -> Scene:
    scene = await _suspended(stage)
    await stage.backend.cancel(RUN)
    return scene


async def _absent(stage: Stage) -> Scene:
    return Scene(stage)


async def _buried(stage: Stage) -> Scene:
    scene = await _completed(stage)
    await stage.backend.delete(RUN)
    return scene


STATES: dict[str, Callable[[Stage], Awaitable[Scene]]] = {
    "queued": _queued, "held": _held, "held_cancelled": _held_cancelled, "held_over": _held_over,
    "held_over_cancelled": _held_over_cancelled, "suspended": _suspended, "suspended_due": _suspended_due,
    "backoff": _backoff, "blocked": _blocked, "completed": _completed, "error": _failed, "cancelled": _cancelled,
    "absent": _absent, "buried": _buried,
}  # fmt: skip


def word(answer: object) -> str:
    """An answer's name, with what matters of its content."""
    match answer:
        case Submitted(deduplicated=deduplicated):
            return "Submitted again" if deduplicated else "Submitted"
        case Settled(held=held) | Dup(held=held):
            return f"{type(answer).__name__}{' held' if held else ''}"
        case [Claim()]:
            return "Claimed"
        case list() | int():
            return str(answer)
    return type(answer).__name__


async def _submit_same(s: Scene) -> object:
    return await s.stage.backend.submit(start())


async def _submit_other(s: Scene) -> object:
    return await s.stage.backend.submit(start(digest="two"))


async def _claim(s: Scene) -> object:
    return await s.stage.take()


async def _claim_again(s: Scene) -> object:
    return await s.stage.backend.claim(s.token.nonce, 1)


async def _settle(s: Scene) -> object:
    return await s.stage.backend.settle(s.following(s.seq + 1))


async def _settle_again(s: Scene) -> object:
    return await s.stage.backend.settle(s.last or s.following(0))


async def _settle_other_bytes(s: Scene) -> object:
    return await s.stage.backend.settle(s.following(s.seq))


async def _settle_by_another(s: Scene) -> object:
    return await s.stage.backend.settle(s.following(s.seq + 1, NOBODY))


async def _settle_ahead(s: Scene) -> object:
    return await s.stage.backend.settle(s.following(s.seq + 2))


async def _renew(s: Scene) -> object:
    [answer] = await s.stage.backend.renew([(RUN, s.token)])
    return answer


async def _renew_by_another(s: Scene) -> object:
    [answer] = await s.stage.backend.renew([(RUN, NOBODY)])
    return answer


async def _wake(s: Scene) -> object:
    return await s.stage.backend.wake(RUN, WAIT, b"1")


async def _wake_unknown(s: Scene) -> object:
    return await s.stage.backend.wake(RUN, WaitId("unknown"), b"1")


async def _cancel(s: Scene) -> object:
    return await s.stage.backend.cancel(RUN)


async def _delete(s: Scene) -> object:
    return await s.stage.backend.delete(RUN)


async def _release(s: Scene) -> object:
    return await s.stage.backend.release(s.token.nonce.partition(".")[0])


async def _reopen(s: Scene) -> object:
    return await s.stage.backend.reopen(RUN)


LIVE = ("queued", "held", "held_cancelled", "held_over", "held_over_cancelled", "suspended", "suspended_due", "backoff",
        "blocked")  # fmt: skip
ENDED = ("completed", "error", "cancelled")
GONE = ("absent", "buried")


def _row(live: str, ended: str, gone: str, **other: str) -> dict[str, str]:
    return {**dict.fromkeys(LIVE, live), **dict.fromkeys(ENDED, ended), **dict.fromkeys(GONE, gone), **other}


CELLS: dict[str, tuple[Callable[[Scene], Awaitable[object]], dict[str, str]]] = {
    "submit": (_submit_same, _row("Submitted again", "Submitted again", "Submitted", buried="Tombstoned")),
    "submit_other": (_submit_other, _row("SubmitConflict", "SubmitConflict", "Submitted", buried="Tombstoned")),
    "claim": (_claim, _row("[]", "[]", "[]", queued="Claimed", held_over="Claimed", suspended_due="Claimed")),
    "claim_again": (_claim_again, _row("Claimed", "[]", "[]", suspended="[]", backoff="[]", blocked="[]")),
    "settle": (
        _settle,
        _row("Stale", "Stale", "Stale", held="Settled held", held_over="Settled held", held_cancelled="Settled",
             held_over_cancelled="Settled"),
    ),
    "settle_again": (
        _settle_again,
        _row("Dup held", "Dup", "Stale", queued="Stale", suspended="Dup", suspended_due="Dup", backoff="Dup",
             blocked="Dup"),
    ),
    "settle_other_bytes": (_settle_other_bytes, _row("Mismatch", "Mismatch", "Stale", queued="Stale")),
    "settle_by_another": (_settle_by_another, _row("Stale", "Stale", "Stale")),
    "settle_ahead": (_settle_ahead, _row("Stale", "Stale", "Stale", held_cancelled="Stale")),
    "renew": (
        _renew,
        _row("Renewed", "Lost", "Lost", queued="Lost", suspended="Lost", suspended_due="Lost", backoff="Lost",
             blocked="Lost"),
    ),
    "renew_by_another": (_renew_by_another, _row("Lost", "Lost", "Lost")),
    "wake": (
        _wake,
        _row("Woken", "NoSuchWait", "NoSuchWait", queued="NoSuchWait", backoff="NoSuchWait",
             held_cancelled="NoSuchWait", held_over_cancelled="NoSuchWait"),
    ),
    "wake_unknown": (_wake_unknown, _row("NoSuchWait", "NoSuchWait", "NoSuchWait")),
    "cancel": (
        _cancel,
        _row("Cancelled", "AlreadyTerminal", "NoRun", held="CancelRequested", held_cancelled="CancelRequested"),
    ),
    "delete": (_delete, _row("NotTerminal", "Deleted", "NoRun")),
    "release": (
        _release,
        _row("0", "0", "0", held="1", held_cancelled="1", held_over="1", held_over_cancelled="1"),
    ),
    "reopen": (_reopen, _row("NotRetryable", "NotRetryable", "NoRun", error="Reopened", blocked="Reopened")),
}  # fmt: skip


class RunCells(Contract):
    """State x verb."""

    @pytest.mark.parametrize("state", STATES)
    @pytest.mark.parametrize("verb", CELLS)
    async def test_each_verb_answers_as_the_table_says_in_each_state(self, stage: Stage, verb: str, state: str) -> None:
        act, answers = CELLS[verb]
        scene = await STATES[state](stage)
        assert word(await act(scene)) == answers[state]
        assert await stage.backend.audit() == []

    @pytest.mark.parametrize("state", ENDED)
    @pytest.mark.parametrize("verb", [v for v in CELLS if v not in ("delete", "reopen")])
    async def test_no_verb_changes_an_ended_run(self, stage: Stage, verb: str, state: str) -> None:
        scene = await STATES[state](stage)
        before = (await stage.backend.run(RUN), await stage.events(), await stage.waits())
        await CELLS[verb][0](scene)
        assert (await stage.backend.run(RUN), await stage.events(), await stage.waits()) == before


async def _wait_open(stage: Stage) -> Claim:
    return await stage.keep(await stage.hold(), listen())


async def _wait_candidate(stage: Stage) -> Claim:
    claim = await stage.keep(await stage.hold(), listen(by_filter=True))
    await stage.backend.publish("e", "pay", "k", b"{}")
    return claim


async def _wait_resolved(stage: Stage) -> Claim:
    claim = await _wait_open(stage)
    await stage.backend.publish("e", "pay", "k", b"{}")
    return claim


async def _wait_answered(stage: Stage) -> Claim:
    claim = await _wait_open(stage)
    await stage.backend.wake(RUN, WAIT, b"1")
    return claim


async def _wait_closed(stage: Stage) -> Claim:
    claim = await _wait_open(stage)
    return await stage.keep(claim, closes=(Closing(WAIT, "timeout"),))


WAIT_STATES: dict[str, Callable[[Stage], Awaitable[Claim]]] = {
    "open": _wait_open, "candidate": _wait_candidate, "resolved": _wait_resolved, "answered": _wait_answered,
    "closed": _wait_closed,
}  # fmt: skip
EVENT_NUMBER = 2
"""The wait draws number 1, the event 2."""

CLOSERS: dict[str, tuple[tuple[Closing, ...], Keep | End, int]] = {
    "read": ((Closing(WAIT, "read"),), Keep(), 1),
    "event": ((Closing(WAIT, "event", EVENT_NUMBER),), Keep(), 1),
    "other_event": ((Closing(WAIT, "event", 99),), Keep(), 1),
    "timeout": ((Closing(WAIT, "timeout"),), Keep(), 0),
    "cut": ((Closing(WAIT, "cut"),), Keep(), 0),
    "end": ((), End("completed"), 0),
    "timeout_after_reading": ((Closing(WAIT, "timeout"),), Keep(), 1),
    "end_after_reading": ((), End("completed"), 1),
}
ACCEPTED: dict[str, frozenset[str]] = {
    "open": frozenset({"timeout", "cut", "end", "timeout_after_reading", "end_after_reading"}),
    "candidate": frozenset({"event", "timeout_after_reading", "end_after_reading"}),
    "resolved": frozenset({"read"}),
    "answered": frozenset({"read"}),
    "closed": frozenset({"end", "end_after_reading"}),
}


class WaitCells(Contract):
    """Wait state x closer: one compare-and-set."""

    @pytest.mark.parametrize("state", WAIT_STATES)
    @pytest.mark.parametrize("closer", CLOSERS)
    async def test_a_wait_closes_only_as_the_table_allows(self, stage: Stage, closer: str, state: str) -> None:
        claim = await WAIT_STATES[state](stage)
        closes, following, ack = CLOSERS[closer]
        answer: SettleAnswer = await stage.settle(claim, following, closes=closes, ack=ack)
        assert word(answer).split()[0] == ("Settled" if closer in ACCEPTED[state] else "WaitConflict")
        if closer in ACCEPTED[state]:
            assert (await stage.waits())[WAIT] == "closed"
        else:
            assert (await stage.backend.reload(RUN, claim.token)).header.seq == claim.header.seq  # type: ignore[union-attr]
        assert await stage.backend.audit() == []

    @pytest.mark.parametrize(
        ("state", "answer"),
        [
            ("open", "Woken"), ("candidate", "Woken"), ("resolved", "AlreadyResolved"),
            ("answered", "AlreadyResolved"), ("closed", "AlreadyResolved"),
        ],
    )  # fmt: skip
    async def test_a_wake_answers_as_the_table_says(self, stage: Stage, state: str, answer: str) -> None:
        await WAIT_STATES[state](stage)
        assert word(await stage.backend.wake(RunId(RUN), WAIT, b"2")) == answer

    @pytest.mark.parametrize("state", ["candidate", "resolved", "answered", "closed"])
    async def test_a_further_event_changes_no_wait_that_has_one_or_is_gone(self, stage: Stage, state: str) -> None:
        await WAIT_STATES[state](stage)
        before = await stage.backend.waits(RUN, open_only=False)
        await stage.backend.publish("later", "pay", "k", b"{}")
        assert await stage.backend.waits(RUN, open_only=False) == before
