"""Dead letters: sending one again, or throwing it away. Whether one can be sent again follows from what it says."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TypeAlias

from plaita.backends.rows import Rows
from plaita.backends.verbs.messages import TENANT
from plaita.base.errors import InputError
from plaita.base.ids import check_id
from plaita.base.json import Json, encode, parse
from plaita.base.moment import iso
from plaita.ports.inbox import (
    MESSAGE_TYPES,
    DeadLetter,
    Deed,
    Discarded,
    Message,
    NoLetter,
    NotReplayed,
    Replayed,
    Replaying,
    ReplayRefusal,
)
from plaita.ports.values import RunId

STREAM = "dead_letters"
"""What a store without the documented streams calls its dead letters."""
_EVENTS: tuple[Json, ...] = (None, "", "event")


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to be sent: ``run_id`` (empty for an event), the tenant and the body."""

    run_id: str
    tenant: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """Why nothing is sent, in a documented word and in words for people."""

    reason: ReplayRefusal
    detail: str


Plan: TypeAlias = Planned | Refused


def replay(rows: Rows, asked: Replaying) -> Replayed | NotReplayed | NoLetter:
    """Send a dead letter again as its message, once; the letter stays. Whatever comes of it is recorded."""
    letter = rows.messages.dead_letter(asked.letter_id)
    if letter is None:
        return NoLetter(asked.letter_id)
    plan = plan_replay(letter, asked, STREAM)
    if isinstance(plan, Planned):
        plan = _may_go(rows, plan, letter, asked)
    message_id = letter.message.message_id
    result = plan.reason if isinstance(plan, Refused) else "ok"
    sent = message_id if result == "ok" else ""
    rows.messages.record(Deed(asked.letter_id, rows.now, "replay", asked.actor, result, asked.force, sent))
    if isinstance(plan, Refused):
        return NotReplayed(plan.reason, plan.detail)
    rows.messages.add(Message(message_id, plan.body, rows.now))
    rows.messages.save_dead(replace(letter, replays=letter.replays + 1))
    return Replayed(message_id, RunId(plan.run_id))


def discard(rows: Rows, letter_id: str, actor: str) -> Discarded | NoLetter:
    """Throw a dead letter away; that it was there, and who did it, stays."""
    letter = rows.messages.dead_letter(letter_id)
    if letter is None:
        return NoLetter(letter_id)
    rows.messages.drop_dead(letter_id)
    rows.messages.record(Deed(letter_id, rows.now, "discard", actor, "ok", False, letter.message.message_id))
    return Discarded(letter_id)


def _may_go(rows: Rows, plan: Planned, letter: DeadLetter, asked: Replaying) -> Plan:
    if plan.run_id and _was_deleted(rows, RunId(plan.run_id)):
        return Refused("execution_deleted", was_deleted(plan.run_id))
    if letter.replays and not asked.force:
        return Refused("already_replayed", ALREADY)
    return Refused("enqueue_failed", WAITING) if rows.messages.holds(letter.message.message_id) else plan


def _was_deleted(rows: Rows, run_id: RunId) -> bool:
    grave = rows.ledger.grave(run_id)
    buried = grave is not None and rows.now < grave.buried_ms + rows.limits.tombstone_ms
    return buried and rows.runs.load(run_id) is None


ALREADY = "it was sent again before; --force sends it once more"
WAITING = "the same message waits in the inbox already"


def was_deleted(run_id: str) -> str:
    """Why nothing is sent for an execution that is gone, in words."""
    return f"execution {run_id!r} was deleted; its id stays taken"


def plan_replay(letter: DeadLetter, asked: Replaying, stream: str) -> Plan:
    """What a dead letter asks for when it is sent again, as far as it can be known without the store."""
    try:
        body = parse(letter.message.body)
    except InputError as e:
        return Refused("not_replayable", f"the message cannot be read: {e}")
    if letter.truncated or not isinstance(body, dict) or body.get("type") not in MESSAGE_TYPES:
        return Refused("not_replayable", "the message is not whole, or of no type that can be sent again")
    if letter.schema_version > letter.schema_version_max:
        text = f"it has schema_version {letter.schema_version}; {letter.schema_version_max} is understood here"
        return Refused("schema_too_new", text)
    sent_ms = letter.died_ms or letter.message.at_ms
    if not body.get("timestamp") and not sent_ms:
        return Refused("carrier_timestamp_unknown", "nothing says when it was sent")
    tenant = body.get("tenant_id") or asked.tenant or asked.default_tenant
    if not isinstance(tenant, str) or not tenant:
        return Refused("not_replayable", "it names no tenant; --tenant does")
    if asked.tenant not in ("", tenant):
        return Refused("tenant_mismatch", f"it is of tenant {tenant!r}, not {asked.tenant!r}")
    return _to_run(body, asked, letter, _Sending(stream, tenant, iso(sent_ms) or ""))


@dataclass(frozen=True, slots=True)
class _Sending:
    stream: str
    tenant: str
    sent: str


def _to_run(body: dict[str, Json], asked: Replaying, letter: DeadLetter, sending: _Sending) -> Plan:
    named = body.get("execution_id") or asked.execution_id
    if asked.execution_id not in ("", named):
        return Refused("execution_id_mismatch", f"it is for execution {named!r}, not {asked.execution_id!r}")
    more: dict[str, Json] = {"timestamp": body.get("timestamp") or sending.sent}
    if body.get("tenant_id") or sending.tenant != TENANT:
        more["tenant_id"] = sending.tenant
    if not named and body["type"] == "start":
        named = named_after(sending.stream, letter.letter_id)
        more["dedup_key"] = body.get("dedup_key") or f"dlq-replay:{named}"
    if not named and not _is_event(body):
        return Refused("not_replayable", "it names no execution")
    if named and not _is_id(named):
        return Refused("not_replayable", f"{named!r} is no id of an execution")
    if named:
        more["execution_id"] = named
    return Planned(str(named or ""), sending.tenant, encode({**body, **more}))


def named_after(stream: str, letter_id: str) -> str:
    """The id of an execution whose start, in a dead letter, names none: the same for every replay of the letter."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"plaita:dlq:replay:{stream}:{letter_id}").hex


def _is_event(body: dict[str, Json]) -> bool:
    by_type = body.get("event_type") and not body.get("wait_id")
    return body["type"] == "event" or (
        body["type"] == "resume" and bool(by_type) and body.get("resume_type") in _EVENTS
    )


def _is_id(named: Json) -> bool:
    try:
        check_id(named, "execution_id") if isinstance(named, str) else None
    except InputError:
        return False
    return isinstance(named, str)


_REASONS: tuple[tuple[str, str], ...] = (
    ("max_deliveries=", "max_deliveries"),
    ("unsupported schema_version=", "unsupported_schema"),
    ("config_family_mismatch_age>", "family_mismatch"),
)


def reason_of(spoken: str) -> tuple[str, str]:
    """Word and words of a documented reason: those of others have words of their own."""
    for beginning, word in _REASONS:
        if spoken.startswith(beginning):
            return word, spoken
    word, _, words = spoken.partition(":")
    return word, words.removeprefix(" ")
