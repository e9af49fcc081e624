"""What every store must do with dead letters: show one, send it again once, throw it away, and tell who did it."""

from __future__ import annotations

import json

import pytest

from plaita.base.errors import InputError
from plaita.base.json import encode
from plaita.base.moment import iso
from plaita.ports.inbox import DeadLetter, Discarded, NoLetter, NotReplayed, Replayed, Replaying
from plaita.ports.values import RunId
from plaita.testing.conformance.inbox import MESSAGE, Body, publish_flows, send, word
from plaita.testing.conformance.stage import RUN, START_MS, Contract, Stage

RESUME: Body = {"type": "resume", "execution_id": "gone", "wait_id": "w", "data": 1, "tenant_id": "acme"}


async def dies(stage: Stage, body: Body | bytes, message_id: str = MESSAGE) -> DeadLetter:
    """Send what is refused; its letter."""
    await send(stage, body, message_id)
    letters, _ = await stage.backend.dead_letters(limit=1_000)
    return letters[-1]


async def again(stage: Stage, letter: DeadLetter, **asked: object) -> str:
    """Replay, in one word."""
    answer = await stage.backend.replay(Replaying(letter.letter_id, "ann", **asked))  # type: ignore[arg-type]
    return answer.reason if isinstance(answer, NotReplayed) else type(answer).__name__


async def deeds(stage: Stage, letter: DeadLetter) -> list[tuple[str, str, str, bool]]:
    found = await stage.backend.dead_letter(letter.letter_id)
    assert found is not None
    return [(deed.action, deed.actor, deed.result, deed.force) for deed in found[1]]


class DeadLetterContract(Contract):
    """Dead letters."""

    async def test_a_letter_is_found_under_its_id(self, stage: Stage) -> None:
        letter = await dies(stage, RESUME)
        found = await stage.backend.dead_letter(letter.letter_id)
        assert found == (letter, [])
        assert (letter.reason, letter.message.message_id, letter.died_ms, letter.replays) == (
            "no_run", MESSAGE, START_MS, 0,
        )  # fmt: skip
        assert json.loads(letter.message.body) == RESUME

    @pytest.mark.parametrize("letter_id", ["", "none", "9", "9" * 40, "-1", "\u0663", "1-1-1", "+"])
    async def test_there_is_no_letter_of_another_id(self, stage: Stage, letter_id: str) -> None:
        await dies(stage, b"[")
        assert await stage.backend.dead_letter(letter_id) is None
        assert await stage.backend.replay(Replaying(letter_id, "ann")) == NoLetter(letter_id)
        assert await stage.backend.discard(letter_id, "ann") == NoLetter(letter_id)

    @pytest.mark.parametrize("cursor", ["none", "9" * 40, "-", "-1", "5-", "5-5-5", "\u0663", "+", "1-" + "9" * 40])
    async def test_a_cursor_that_no_page_gave_is_refused(self, stage: Stage, cursor: str) -> None:
        await dies(stage, b"[")
        with pytest.raises(InputError, match="is not the `next` of a page"):
            await stage.backend.dead_letters(cursor=cursor)

    async def test_what_is_refused_twice_is_two_letters(self, stage: Stage) -> None:
        first = await dies(stage, b"[")
        second = await dies(stage, b"[")
        assert first.letter_id != second.letter_id
        assert len((await stage.backend.dead_letters())[0]) == 2

    async def test_a_replay_sends_the_same_message_again_and_keeps_the_letter(self, stage: Stage) -> None:
        letter = await dies(stage, RESUME)
        assert await stage.backend.replay(Replaying(letter.letter_id, "ann")) == Replayed(MESSAGE, RunId("gone"))
        [accepted] = await stage.backend.accept(9)
        assert (accepted.message_id, word(accepted.outcome)) == (MESSAGE, "no_run")
        found = await stage.backend.dead_letter(letter.letter_id)
        assert found is not None and found[0].replays == 1

    async def test_a_replay_does_what_was_refused_once_it_is_possible(self, stage: Stage) -> None:
        await publish_flows(stage)
        letter = await dies(stage, {**RESUME, "execution_id": RUN, "tenant_id": "default"})
        await stage.hold()
        assert await again(stage, letter) == "Replayed"
        [accepted] = await stage.backend.accept(9)
        assert word(accepted.outcome) == "NoSuchWait"

    async def test_a_letter_is_sent_again_once_unless_it_is_meant(self, stage: Stage) -> None:
        letter = await dies(stage, RESUME)
        assert [await again(stage, letter), await again(stage, letter)] == ["Replayed", "already_replayed"]
        await stage.backend.accept(9)
        assert await again(stage, letter, force=True) == "Replayed"
        assert [d[2:] for d in await deeds(stage, letter)] == [("ok", False), ("already_replayed", False), ("ok", True)]

    async def test_a_message_that_waits_is_not_sent_beside_itself(self, stage: Stage) -> None:
        letter = await dies(stage, RESUME)
        await again(stage, letter)
        assert await again(stage, letter, force=True) == "enqueue_failed"
        assert await stage.backend.accept(9) != []

    @pytest.mark.parametrize("body", [b"[", b'"text"', b"{}", b'{"type": "dance"}', b'{"type": "resume", "data": 1}'])
    async def test_what_makes_no_sense_is_not_sent_again(self, stage: Stage, body: bytes) -> None:
        letter = await dies(stage, body)
        assert await again(stage, letter, default_tenant="default") == "not_replayable"
        assert await deeds(stage, letter) == [("replay", "ann", "not_replayable", False)]

    async def test_a_message_of_nobody_needs_a_tenant(self, stage: Stage) -> None:
        letter = await dies(stage, {**RESUME, "tenant_id": None})
        assert await again(stage, letter) == "not_replayable"
        assert await again(stage, letter, tenant="acme") == "Replayed"
        assert await again(stage, letter, default_tenant="default", force=True) == "enqueue_failed"

    async def test_a_letter_of_another_tenant_or_execution_is_not_the_one_that_is_meant(self, stage: Stage) -> None:
        letter = await dies(stage, RESUME)
        assert await again(stage, letter, tenant="other") == "tenant_mismatch"
        assert await again(stage, letter, execution_id="other") == "execution_id_mismatch"
        assert await again(stage, letter, tenant="acme", execution_id="gone") == "Replayed"

    async def test_nothing_is_sent_for_an_execution_that_was_deleted(self, stage: Stage) -> None:
        await publish_flows(stage)
        letter = await dies(stage, RESUME | {"execution_id": RUN})
        await stage.hold()
        await stage.backend.cancel(RUN)
        await stage.lease_over()
        await stage.take()
        await stage.backend.delete(RUN)
        assert await again(stage, letter) == "execution_deleted"

    async def test_a_start_without_an_id_is_the_same_start_at_every_replay(self, stage: Stage) -> None:
        letter = await dies(stage, {"type": "start", "flow_id": "flow", "execution_id": "a\nb", "tenant_id": "acme"})
        assert await again(stage, letter) == "not_replayable"
        nameless = {"type": "start", "flow_id": "flow", "params": [1], "tenant_id": "acme"}
        letter = await dies(stage, nameless, "m2")
        first = await stage.backend.replay(Replaying(letter.letter_id, "ann"))
        await stage.backend.accept(9)
        second = await stage.backend.replay(Replaying(letter.letter_id, "ann", force=True))
        assert isinstance(first, Replayed) and isinstance(second, Replayed)
        assert first.run_id == second.run_id
        sent = json.loads((await dies_again(stage)).message.body)
        assert (sent["execution_id"], sent["dedup_key"]) == (first.run_id, f"dlq-replay:{first.run_id}")
        assert len(first.run_id) == 32

    async def test_a_replay_is_as_old_as_what_it_repeats(self, stage: Stage) -> None:
        stamped = await dies(stage, {**RESUME, "timestamp": "2020-01-01T00:00:00Z"})
        await again(stage, stamped)
        stage.clock.advance(5)
        assert json.loads((await dies_again(stage)).message.body)["timestamp"] == "2020-01-01T00:00:00Z"
        bare = await dies(stage, RESUME, "m2")
        stage.clock.advance(60_000)
        await again(stage, bare)
        assert json.loads((await dies_again(stage)).message.body)["timestamp"] == iso(bare.died_ms)

    async def test_an_event_is_sent_again_as_the_same_event(self, stage: Stage) -> None:
        letter = await dies(stage, encode({"type": "event", "tenant_id": "acme"}))
        assert await again(stage, letter) == "Replayed"
        assert (await dies_again(stage)).message.message_id == MESSAGE

    async def test_a_discarded_letter_is_gone_and_others_stay(self, stage: Stage) -> None:
        first, second = await dies(stage, b"["), await dies(stage, b"{}", "m2")
        assert await stage.backend.discard(first.letter_id, "bob") == Discarded(first.letter_id)
        letters, _ = await stage.backend.dead_letters()
        assert [letter.letter_id for letter in letters] == [second.letter_id]
        assert await stage.backend.discard(first.letter_id, "bob") == NoLetter(first.letter_id)


async def dies_again(stage: Stage) -> DeadLetter:
    """Accept what was sent again and is refused again; its new letter."""
    await stage.backend.accept(9)
    letters, _ = await stage.backend.dead_letters(limit=1_000)
    return letters[-1]
