"""Dead letters over the documented stream: what this store writes there, and what other programs do."""

from __future__ import annotations

import re
from typing import Any, Final

from plaita.backends.redis.codec import pairs_of_text
from plaita.backends.redis.entries import GENERATIONS, LEGACY, SCHEMA_VERSION
from plaita.backends.redis.talk import Talk
from plaita.backends.verbs.letters import ALREADY, WAITING, Planned, Refused, plan_replay, reason_of, was_deleted
from plaita.base.errors import InputError
from plaita.base.ids import check_cursor
from plaita.base.json import Json, encode, parse
from plaita.base.moment import LATEST_MS
from plaita.ports.inbox import (
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

DEEDS_LOOKED_AT: Final = 10_000
_MARKED: Final = "attempts"
_ID: Final = re.compile(r"[0-9]{1,19}-[0-9]{1,19}")


class RedisLetters:
    """An id is that of the entry in the stream."""

    _talk: Talk

    async def dead_letters(self, *, limit: int = 100, cursor: str = "") -> tuple[list[DeadLetter], str]:
        check_cursor(cursor, _ID)
        found = await self._talk.call(
            "XRANGE", self._talk.key("dlq"), f"({cursor}" if cursor else "-", "+", "COUNT", limit + 1
        )
        letters = await self._letters(found[:limit])
        return letters, letters[-1].letter_id if len(found) > limit else ""

    async def dead_letter(self, letter_id: str) -> tuple[DeadLetter, list[Deed]] | None:
        entry = await self._entry(letter_id)
        return None if entry is None else ((await self._letters([entry]))[0], await self._deeds(letter_id))

    async def replay(self, asked: Replaying) -> Replayed | NotReplayed | NoLetter:
        entry = await self._entry(asked.letter_id)
        if entry is None:
            return NoLetter(asked.letter_id)
        [letter], said = await self._letters([entry]), _said(pairs_of_text(entry[1]))
        plan = plan_replay(letter, asked, self._talk.key("dlq"))
        result, _ = await self._talk.run(
            "replay", result=None if isinstance(plan, Planned) else plan.reason,
            force=asked.force, message=letter.message.message_id, at=letter.message.at_ms,
            body=plan.body if isinstance(plan, Planned) else None, envelope=_envelope(said),
            **_facts(asked.letter_id, asked.actor, said, plan),
        )  # fmt: skip
        if result == b"ok" and isinstance(plan, Planned):
            return Replayed(letter.message.message_id, RunId(plan.run_id))
        if isinstance(plan, Refused):
            return NotReplayed(plan.reason, plan.detail)
        reason: ReplayRefusal = result.decode()
        words = {"already_replayed": ALREADY, "enqueue_failed": WAITING, "execution_deleted": was_deleted(plan.run_id)}
        return NotReplayed(reason, words.get(reason, "the letter is not there any more"))

    async def discard(self, letter_id: str, actor: str) -> Discarded | NoLetter:
        entry = await self._entry(letter_id)
        if entry is None:
            return NoLetter(letter_id)
        facts = _facts(letter_id, actor, _said(pairs_of_text(entry[1])), None)
        done = await self._talk.run("discard", force=False, **facts)
        return Discarded(letter_id) if done else NoLetter(letter_id)

    async def _entry(self, letter_id: str) -> tuple[bytes, list[bytes]] | None:
        if not _ID.fullmatch(letter_id):
            return None
        found = await self._talk.call("XRANGE", self._talk.key("dlq"), letter_id, letter_id)
        return (found[0][0], found[0][1]) if found else None

    async def _letters(self, entries: list[tuple[bytes, list[bytes]]]) -> list[DeadLetter]:
        dlq = self._talk.key("dlq")
        markers = [self._talk.key("replayed", dlq, entry_id.decode()) for entry_id, _ in entries]
        found = await self._talk.call("MGET", *markers) if markers else []
        return [_letter(entry_id.decode(), flat, mark) for (entry_id, flat), mark in zip(entries, found, strict=True)]

    async def _deeds(self, letter_id: str) -> list[Deed]:
        """Of the latest ones in the store."""
        audit = self._talk.key("replay_audit")
        found = await self._talk.call("XREVRANGE", audit, "+", "-", "COUNT", DEEDS_LOOKED_AT)
        deeds = [pairs_of_text(flat) for _, flat in reversed(found)]
        return [_deed(letter_id, deed) for deed in deeds if deed.get("dlq_id") == letter_id.encode()]


def _letter(letter_id: str, flat: list[bytes], marker: bytes | None) -> DeadLetter:
    fields = pairs_of_text(flat)
    said = _said(fields)
    spoken = said.get("reason")
    reason, detail = reason_of(spoken if isinstance(spoken, str) else "")
    body = fields.get("body") or _body(said)
    died, born = said.get("dead_lettered_at"), int(letter_id.partition("-")[0])
    return DeadLetter(
        Message(_name(fields, said), body, _at(fields, said, born)), reason, detail,
        _ms_of(died, born), letter_id, _attempts(marker),
        _whole(said.get("schema_version")), SCHEMA_VERSION, bool(said.get("truncated")) and "body" not in fields,
    )  # fmt: skip


def _said(fields: dict[str, bytes]) -> dict[str, Json]:
    try:
        said = parse(fields.get("payload", b""))
    except InputError:
        return {}
    return said if isinstance(said, dict) else {}


def _body(said: dict[str, Json]) -> bytes:
    """The message in a letter; a part of it, as text, where that is all."""
    payload = said.get("payload")
    return payload.encode() if isinstance(payload, str) else encode(payload)


def _name(fields: dict[str, bytes], said: dict[str, Json]) -> str:
    source = said.get("source_id")
    return fields.get("message_id", b"").decode(errors="replace") or (source if isinstance(source, str) else "")


def _at(fields: dict[str, bytes], said: dict[str, Json], born: int) -> int:
    source = said.get("source_id")
    texts = (fields.get("at", b"").decode(errors="replace"), str(source).partition("-")[0])
    return next((int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) < 16), born)


def _ms_of(seconds: Json, otherwise: int) -> int:
    """Seconds since 1970 as others wrote them, in milliseconds; ``otherwise`` for what is no time that can be shown."""
    is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds <= LATEST_MS / 1000
    return round(seconds * 1000) if is_time else otherwise


def _attempts(marker: bytes | None) -> int:
    if marker is None:
        return 0
    try:
        said = parse(marker)
    except InputError:
        return 1
    return _whole(said.get(_MARKED)) if isinstance(said, dict) else 1


def _whole(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 1


def _envelope(said: dict[str, Json]) -> list[str]:
    """A replay is as old, and of the same kind, as what it repeats."""
    kept = {name: said.get(name) for name in GENERATIONS}
    fields = {"schema_version": str(_whole(said.get("schema_version")))}
    fields |= {name: value if isinstance(value, str) and value else LEGACY for name, value in kept.items()}
    at = said.get("config_effective_at")
    fields |= {"config_effective_at": at} if isinstance(at, str) and at else {}
    return [part for pair in fields.items() for part in pair]


def _facts(letter_id: str, actor: str, said: dict[str, Json], plan: Planned | Refused | None) -> dict[str, Any]:
    """What the record of a deed says besides its result."""
    goes = plan if isinstance(plan, Planned) else Planned("", "", b"")
    source = said.get("source_id")
    return {
        "letter": letter_id, "actor": actor, "source": source if isinstance(source, str) else "", "run": goes.run_id,
        "tenant": goes.tenant, "schema": _whole(said.get("schema_version")),
    }  # fmt: skip


def _deed(letter_id: str, deed: dict[str, bytes]) -> Deed:
    text = {name: value.decode(errors="replace") for name, value in deed.items()}
    at = text.get("ts", "")
    at_ms = _ms_of(float(at), 0) if at.replace(".", "", 1).isdecimal() else 0
    action: Any = text.get("action", "").removeprefix("dlq.")
    forced, entry = text.get("force") == "1", text.get("target_message_id", "")
    return Deed(letter_id, at_ms, action, text.get("actor", ""), text.get("result", ""), forced, entry)
