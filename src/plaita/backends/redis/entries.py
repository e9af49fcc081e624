"""Entries of the stream of producers: what one carries besides its message, and how it is quoted in a dead letter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from plaita.backends.limits import Fleet, Limits
from plaita.backends.redis.codec import pairs_of_text
from plaita.base.errors import InputError
from plaita.base.ids import check_id
from plaita.base.json import Json, encode, parse
from plaita.ports.inbox import DeadLettered, Message

SCHEMA_VERSION: Final = 1
"""The newest envelope that is understood here."""
LEGACY: Final = "legacy"
GENERATIONS: Final = ("config_family", "config_generation", "budget_generation")
QUOTED_CHARS_MAX = 500
_FAMILY = re.compile(r"cf1-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One delivery of an entry. ``fields`` are the documented ones as they came; ``deliveries`` counts this one."""

    id: str
    message: Message
    fields: dict[str, bytes]
    deliveries: int

    @property
    def schema_version(self) -> int:
        """What is missing or no number is the first version."""
        return self._version or SCHEMA_VERSION

    @property
    def _version(self) -> int:
        text = self.fields.get("schema_version", b"").decode(errors="replace").strip()
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0

    @property
    def family(self) -> str:
        """Who sent it; what is missing or no id of a family is ``legacy``."""
        text = self.fields.get("config_family", b"").decode(errors="replace").strip()
        return text if _FAMILY.fullmatch(text) else LEGACY

    def unreadable(self, fleet: Fleet) -> tuple[str, ...]:
        """What the envelope should say and does not, by the names under which it is counted."""
        found = () if self._version else ("schema_legacy",)
        return (*found, "config_legacy") if fleet.family and self.family == LEGACY else found

    def is_foreign(self, fleet: Fleet) -> bool:
        """Whether it was sent for another fleet."""
        return bool(fleet.family) and self.family not in (LEGACY, fleet.family)


def entry_of(reply: Sequence[Any]) -> Entry:
    """One answer of ``lua/receive.lua``: id, fields, deliveries. An entry without a message id is called by its own."""
    raw_id, flat, deliveries = reply
    entry_id, fields = raw_id.decode(), pairs_of_text(flat)
    name, at = fields.get("message_id", b"").decode(errors="replace"), fields.get("at", b"")
    if not (_is_name(name) and at.isdigit()):
        name, at = entry_id, raw_id.partition(b"-")[0]
    return Entry(entry_id, Message(name, fields.get("payload", b""), int(at)), fields, deliveries)


def envelope(fleet: Fleet) -> list[str]:
    """Names and values that a message sent from here carries beside its payload."""
    said = {"schema_version": str(SCHEMA_VERSION)}
    if fleet.family:
        said |= {"config_family": fleet.family, "config_generation": fleet.generation}
        said |= {"budget_generation": fleet.budget}
    return [part for pair in said.items() for part in pair]


def _is_name(text: str) -> bool:
    try:
        check_id(text, "message_id")
    except InputError:
        return False
    return bool(text)


def refusal(entry: Entry, deliveries_max: int) -> DeadLettered | None:
    """Why an entry is not even read: written for a newer reader, or whoever took it never came to an end with it."""
    if entry.schema_version > SCHEMA_VERSION:
        text = f"unsupported schema_version={entry.schema_version} (this build understands <= {SCHEMA_VERSION})"
        return DeadLettered("unsupported_schema", text)
    if entry.deliveries > deliveries_max:
        return DeadLettered("max_deliveries", f"max_deliveries={deliveries_max}")
    return None


def foreign_words(entry: Entry, limits: Limits) -> str:
    """What is said of an entry for another fleet when nobody came for it; empty when it is none."""
    if not entry.is_foreign(limits.fleet):
        return ""
    where = f"config_family={entry.family}, here {limits.fleet.family}"
    return f"config_family_mismatch_age>{limits.message_age_ms // 1000}s ({where})"


def quotation(entry: Entry, *, is_sound: bool) -> tuple[bytes, bytes]:
    """Members of the documented dead letter that the entry alone says, without braces, and the message in it.

    The message is empty when the body stands there as it is; ``is_sound``: it is known to be an object.
    """
    said: dict[str, Json] = {"delivery_count": entry.deliveries, "schema_version": entry.schema_version}
    said |= {name: _text(entry.fields.get(name, b"")) or LEGACY for name in GENERATIONS}
    said["config_effective_at"] = _text(entry.fields.get("config_effective_at", b"")) or None
    if is_sound or _is_object(entry.message.body):
        return encode(said)[1:-1], b""
    raw = {name: _text(value) for name, value in entry.fields.items()}
    said["raw_fields"] = {name[:QUOTED_CHARS_MAX]: text[:QUOTED_CHARS_MAX] for name, text in raw.items()}
    said["truncated"] = any(len(text) > QUOTED_CHARS_MAX for text in raw.values())
    return encode(said)[1:-1], encode(_text(entry.message.body)[:QUOTED_CHARS_MAX])


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(parse(body), dict)
    except InputError:
        return False
