"""What every ``InboxStore`` must do: each cell of message x state, and what surrounds them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plaita.base.duration import DAY_MS
from plaita.base.errors import InputError
from plaita.base.json import encode, parse
from plaita.ports.inbox import (
    Accepted,
    CancelAccepted,
    DeadLettered,
    EventAccepted,
    Offered,
    Outcome,
    Passed,
    Resumed,
    Retried,
    Started,
)  # fmt: skip
from plaita.ports.runs import Park, Settled
from plaita.ports.values import Mail
from plaita.testing.conformance.cells import ENDED, GONE, LIVE, STATES
from plaita.testing.conformance.stage import RUN, START_MS, WAIT, Contract, Stage, listen

MESSAGE = "m1"
LONG_AGO = "2020-01-01T00:00:00"
Body = dict[str, Any]


def _row(live: str, ended: str, absent: str, buried: str, **other: str) -> dict[str, str]:
    gone = {"absent": absent, "buried": buried}
    return {**dict.fromkeys(LIVE, live), **dict.fromkeys(ENDED, ended), **gone, **other}


START: Body = {"type": "start", "execution_id": RUN, "flow_id": "flow", "params": {"x": 1}}
RESUME: Body = {"type": "resume", "execution_id": RUN, "wait_id": WAIT, "data": 1}
_EVENT: Body = {"type": "resume", "resume_type": "event", "event_type": "pay", "key": "k", "data": 1}
_CANCEL: Body = {"type": "cancel", "execution_id": RUN}
_WOKEN = _row(
    "Woken", "NoSuchWait", "no_run", "no_run", queued="NoSuchWait", backoff="NoSuchWait", held_cancelled="NoSuchWait",
    held_over_cancelled="NoSuchWait",
)  # fmt: skip
_STOPPED = _row(
    "Cancelled", "AlreadyTerminal", "no_run", "no_run", held="CancelRequested", held_cancelled="CancelRequested"
)
_STANDING = _row(
    "goes_on", "already_terminal", "no_run", "no_run", suspended="already_suspended",
    suspended_due="already_suspended", blocked="already_suspended",
)  # fmt: skip
_OLD = dict.fromkeys((*ENDED, *GONE), "too_old")


def _always(word: str) -> dict[str, str]:
    return dict.fromkeys(STATES, word)


CELLS: dict[str, tuple[Body | bytes, dict[str, str]]] = {
    "start": (START, _row("Started again", "Started again", "Started", "tombstoned")),
    "start_of_a_version": ({**START, "version": "2"}, _row("conflict", "conflict", "Started", "tombstoned")),
    "start_with_other_input": ({**START, "params": {}}, _row("conflict", "conflict", "Started", "tombstoned")),
    "start_of_an_unknown_flow": (
        {**START, "flow_id": "none"}, _row("conflict", "conflict", "Started", "tombstoned"),
    ),
    "start_by_another_tenant": (
        {**START, "tenant_id": "other"}, _row("conflict", "conflict", "Started", "tombstoned"),
    ),
    "old_start": ({**START, "timestamp": LONG_AGO}, {**_always("Started again"), **_OLD}),
    "resume": (RESUME, _WOKEN),
    "old_resume": ({**RESUME, "timestamp": LONG_AGO}, {**_WOKEN, **_OLD}),
    "resume_of_an_unknown_wait": (
        {**RESUME, "wait_id": "none"}, _row("NoSuchWait", "NoSuchWait", "no_run", "no_run"),
    ),
    "resume_of_a_subscription": (
        {**RESUME, "wait_id": None, "data": {"subscription_id": WAIT, "event_data": 1}}, _WOKEN,
    ),
    "resume_by_another_tenant": ({**RESUME, "tenant_id": "other"}, _always("no_run")),
    "resume_with_an_event": (_EVENT, _always("EventAccepted")),
    "event": ({**_EVENT, "type": "event", "timestamp": LONG_AGO}, _always("EventAccepted")),
    "cancel": (_CANCEL, _STOPPED),
    "resume_that_cancels": ({**RESUME, "resume_type": "cancel"}, _STOPPED),
    "old_cancel": ({**_CANCEL, "timestamp": LONG_AGO}, {**_STOPPED, **_OLD}),
    "unknown_type": ({**START, "type": "stop"}, _always("unknown_type")),
    "unknown_resume_type": ({**RESUME, "resume_type": "nope"}, _always("unknown_resume_type")),
    "continue": ({**RESUME, "resume_type": "continue"}, _STANDING),
    "retry": ({**RESUME, "resume_type": "retry"}, {**_STANDING, "error": "Reopened", "blocked": "Reopened"}),
    "old_retry": (
        {**RESUME, "resume_type": "retry", "timestamp": LONG_AGO}, {**_STANDING, "blocked": "Reopened", **_OLD},
    ),
    "timeout": ({**RESUME, "resume_type": "timeout"}, _WOKEN),
    "timeout_of_an_unknown_wait": (
        {**RESUME, "resume_type": "timeout", "wait_id": "none"}, _row("NoSuchWait", "NoSuchWait", "no_run", "no_run"),
    ),
    "resume_of_another_flow": ({**RESUME, "flow_id": "none"}, _row("conflict", "conflict", "no_run", "no_run")),
    "cancel_of_another_flow": ({**_CANCEL, "flow_id": "none"}, _row("conflict", "conflict", "no_run", "no_run")),
    "continue_of_another_flow": (
        {**RESUME, "resume_type": "continue", "flow_id": "none"}, _row("conflict", "conflict", "no_run", "no_run"),
    ),
    "malformed": (b'{"type": "start"', _always("invalid_payload")),
}  # fmt: skip
"""Message x state: the answer of the verb, or the reason of the dead letter."""

UNCHANGED = frozenset(
    {"Started again", "AlreadyTerminal", "NoSuchWait", "goes_on", "already_suspended", "already_terminal"}
)
"""Answers after which everything is as it was."""

INVALID: dict[str, bytes] = {
    "nothing": b"",
    "no text": b"\xff\xfe\xfa",
    "null": b"null",
    "a list": b"[]",
    "a number": b"3",
    "a text": b'"start"',
    "no type": b"{}",
    "a type that is no text": b'{"type": 1}',
    "NaN": b'{"type": "start", "flow_id": "flow", "params": {"x": NaN}}',
    "a key twice": b'{"type": "start", "flow_id": "flow", "flow_id": "flow"}',
    "a lone surrogate": b'{"type": "start", "flow_id": "\\ud800"}',
    "deep nesting": b'{"type": "start", "flow_id": "flow", "params": ' + b"[" * 100_000,
    "a start without a flow": b'{"type": "start"}',
    "params that are no object": b'{"type": "start", "flow_id": "flow", "params": [1]}',
    "a version that is no text": b'{"type": "start", "flow_id": "flow", "version": 2}',
    "an id with a line break": b'{"type": "start", "flow_id": "flow", "execution_id": "a\\nb"}',
    "a queue that no list of names can name": b'{"type": "start", "flow_id": "flow", "queue": "a,b"}',
    "an id that is too long": b'{"type": "start", "flow_id": "flow", "execution_id": "' + b"x" * 201 + b'"}',
    "a resume of nothing": b'{"type": "resume", "execution_id": "r"}',
    "a resume of a subscription that is no text": (
        b'{"type": "resume", "execution_id": "r", "data": {"subscription_id": 1}}'
    ),
    "a resume without an id": b'{"type": "resume", "wait_id": "w"}',
    "an event without a type": b'{"type": "event"}',
    "a cancel without an id": b'{"type": "cancel"}',
}


def word(outcome: Outcome) -> str:
    """An outcome's name, or what matters of its content."""
    match outcome:
        case Started(deduplicated=deduplicated):
            return "Started again" if deduplicated else "Started"
        case Resumed(answer) | CancelAccepted(answer):
            return type(answer).__name__
        case Retried(answer):
            return type(answer).__name__
        case DeadLettered(reason) | Passed(reason):
            return reason
    return type(outcome).__name__


def said(body: bytes) -> object:
    """What a body says, however it is spelled; the body itself when that is not to be known."""
    try:
        return parse(body)
    except InputError:
        return body


async def send(stage: Stage, body: Body | bytes, message_id: str = MESSAGE) -> Outcome:
    """Offer a message and accept it."""
    await stage.backend.offer(message_id, body if isinstance(body, bytes) else encode(body))
    [accepted] = await stage.backend.accept(1)
    assert accepted.message_id == message_id
    return accepted.outcome


async def publish_flows(stage: Stage) -> None:
    await stage.backend.publish_flow("flow", "2", "closure2")
    await stage.backend.publish_flow("flow", "1", "closure")


class InboxCells(Contract):
    """Message x state."""

    @pytest.mark.parametrize("state", STATES)
    @pytest.mark.parametrize("message", CELLS)
    async def test_each_message_does_what_the_table_says_in_each_state(
        self, stage: Stage, message: str, state: str
    ) -> None:
        await publish_flows(stage)
        body, outcomes = CELLS[message]
        await STATES[state](stage)
        before = (await stage.backend.run(RUN), await stage.events(), await stage.waits())
        outcome = await send(stage, body)
        assert word(outcome) == outcomes[state]
        letters, _ = await stage.backend.dead_letters()
        assert [letter.reason for letter in letters] == ([outcome.reason] if isinstance(outcome, DeadLettered) else [])
        if letters or outcomes[state] in UNCHANGED:
            assert (await stage.backend.run(RUN), await stage.events(), await stage.waits()) == before
        assert await stage.backend.backlog() == 0
        assert await stage.backend.audit() == []

    @pytest.mark.parametrize("state", LIVE)
    @pytest.mark.parametrize("message", ["start", "old_start", "resume", "old_resume", "cancel", "old_cancel"])
    async def test_a_second_delivery_is_harmless(self, stage: Stage, message: str, state: str) -> None:
        await publish_flows(stage)
        body, _ = CELLS[message]
        await STATES[state](stage)
        await send(stage, body)
        before = (await stage.backend.run(RUN), await stage.waits())
        again = word(await send(stage, body))
        if message.startswith("old_") and before[0] is not None and before[0].status == "cancelled":
            assert again == "too_old"
        else:
            assert again in ("Started again", "AlreadyResolved", "NoSuchWait", "CancelRequested", "AlreadyTerminal")
        assert (await stage.backend.run(RUN), await stage.waits()) == before


class InboxContract(Contract):
    """Nothing a producer sends is lost, done twice, or harms what exists."""

    async def test_a_message_waits_until_it_is_accepted(self, stage: Stage) -> None:
        await publish_flows(stage)
        assert await stage.backend.accept(9) == []
        assert await stage.backend.offer(MESSAGE, encode(START)) == Offered(duplicate=False)
        assert await stage.backend.offer(MESSAGE, b"other") == Offered(duplicate=True)
        assert (await stage.backend.backlog(), await stage.backend.run(RUN)) == (1, None)
        assert await stage.backend.accept(9) == [Accepted(MESSAGE, Started(RUN, deduplicated=False))]
        assert (await stage.backend.backlog(), await stage.status()) == (0, "queued")
        assert await stage.backend.accept(9) == []

    async def test_messages_are_accepted_in_the_order_they_came(self, stage: Stage) -> None:
        await publish_flows(stage)
        for message_id, body in (("z", START), ("a", _CANCEL), ("m", _CANCEL)):
            await stage.backend.offer(message_id, encode(body))
        first = await stage.backend.accept(2)
        assert [(a.message_id, word(a.outcome)) for a in first] == [("z", "Started"), ("a", "Cancelled")]
        assert [word(a.outcome) for a in await stage.backend.accept(2)] == ["AlreadyTerminal"]

    @pytest.mark.parametrize("name", INVALID)
    async def test_a_message_that_makes_no_sense_is_a_dead_letter(self, stage: Stage, name: str) -> None:
        await publish_flows(stage)
        outcome = await send(stage, INVALID[name])
        assert isinstance(outcome, DeadLettered)
        assert outcome.reason == "invalid_payload"
        [letter], _ = await stage.backend.dead_letters()
        assert (said(letter.message.body), letter.detail, letter.died_ms) == (
            said(INVALID[name]),
            outcome.detail,
            START_MS,
        )
        assert letter.detail
        assert await stage.backend.runs() == ([], "")

    @pytest.mark.parametrize(
        ("body", "detail"),
        [
            (b"", "$: the message is empty; on Redis it stands in the field payload of its entry"),
            (b"{}", "$.type: is missing: one of start, resume, event, cancel"),
            (b'{"type": "begin"}', "$.type: 'begin' is none of start, resume, event, cancel"),
        ],
        ids=["nothing", "no type", "no such type"],
    )
    async def test_a_dead_letter_says_what_its_message_lacks(self, stage: Stage, body: bytes, detail: str) -> None:
        outcome = await send(stage, body)
        assert isinstance(outcome, DeadLettered)
        assert outcome.detail == detail

    async def test_one_bad_message_keeps_no_other_back(self, stage: Stage) -> None:
        await publish_flows(stage)
        await stage.backend.offer("bad", b"[")
        await stage.backend.offer("good", encode(START))
        assert [word(a.outcome) for a in await stage.backend.accept(9)] == ["invalid_payload", "Started"]

    async def test_an_answer_by_message_reaches_its_wait(self, stage: Stage) -> None:
        await STATES["suspended"](stage)
        await send(stage, {**RESUME, "data": {"ok": True}})
        [claim] = await stage.take()
        assert claim.mailbox == (Mail(1, "wake", WAIT, b'{"ok":true}'),)

    async def test_an_event_by_message_wakes_whoever_waits_for_it_once(self, stage: Stage) -> None:
        answer = await stage.settle(await stage.hold(), Park(None), arms=(listen(),))
        assert isinstance(answer, Settled)
        first = await send(stage, _EVENT)
        assert isinstance(first, EventAccepted)
        assert (first.published.event_id, first.published.woken) == (MESSAGE, 1)
        again = await send(stage, _EVENT)
        assert isinstance(again, EventAccepted)
        assert again.published.duplicate
        named = await send(stage, {**_EVENT, "event_id": "e7"})
        assert isinstance(named, EventAccepted)
        assert (named.published.event_id, named.published.duplicate) == ("e7", False)

    async def test_a_message_is_too_old_after_thirty_days_in_the_inbox(self, stage: Stage) -> None:
        await publish_flows(stage)
        for run_id in ("a", "b"):
            await stage.backend.offer(run_id, encode({**START, "execution_id": run_id}))
            stage.clock.advance(1)
        stage.clock.advance(30 * DAY_MS - 1)
        assert [word(a.outcome) for a in await stage.backend.accept(9)] == ["too_old", "Started"]

    async def test_a_stamp_makes_a_message_older_but_never_younger(self, stage: Stage) -> None:
        await publish_flows(stage)
        month_ago = datetime.fromtimestamp((START_MS - 30 * DAY_MS) / 1000, UTC)
        body = {**START, "timestamp": month_ago.isoformat()}
        await stage.backend.offer("m1", encode(body))
        await stage.backend.offer("m2", encode({**START, "execution_id": "z", "timestamp": "2099-01-01T00:00:00Z"}))
        assert [word(a.outcome) for a in await stage.backend.accept(1)] == ["Started"]
        stage.clock.advance(30 * DAY_MS + 1)
        assert [word(a.outcome) for a in await stage.backend.accept(1)] == ["too_old"]

    @pytest.mark.parametrize("stamp", ["yesterday", 7, [], "9999-12-31T23:59:59-23:00"])
    async def test_a_stamp_that_is_no_time_is_passed_over(self, stage: Stage, stamp: object) -> None:
        await publish_flows(stage)
        assert word(await send(stage, {**START, "timestamp": stamp})) == "Started"

    async def test_dead_letters_are_read_page_by_page_and_forgotten_with_the_runs(self, stage: Stage) -> None:
        for number in range(5):
            await send(stage, b"[", f"m{number}")
            stage.clock.advance(10)
        page, cursor = await stage.backend.dead_letters(limit=3)
        rest, end = await stage.backend.dead_letters(limit=3, cursor=cursor)
        assert [x.message.message_id for x in (*page, *rest)] == [f"m{number}" for number in range(5)]
        assert end == ""
        await stage.backend.prune(START_MS + 20)
        left, _ = await stage.backend.dead_letters()
        assert [x.message.message_id for x in left] == ["m2", "m3", "m4"]

    @pytest.mark.parametrize("message_id", ["", " a", "a\nb", "\ud800", "x" * 201])
    async def test_a_message_needs_an_id_that_is_one(self, stage: Stage, message_id: str) -> None:
        with pytest.raises(InputError, match="message_id"):
            await stage.backend.offer(message_id, b"{}")

    async def test_a_body_is_bounded(self, stage: Stage) -> None:
        with pytest.raises(InputError, match="16000001 bytes"):
            await stage.backend.offer(MESSAGE, b" " * 16_000_001)
        assert await stage.backend.backlog() == 0
