"""What runs of one definition share, looked up by name. A name is made of what it says, so what was read stays true."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from plaita.backends.redis.codec import KINDS_MAX, Kind, kind_of
from plaita.backends.redis.talk import Talk
from plaita.base.json import decode

SCANNED: Final = 1_000


class Kinds:
    """Kinds as they were read, up to a bound."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._kept: dict[str, Kind] = {}

    async def of(self, name: str) -> Kind | None:
        """The kind of that name; ``None`` when the last run that had it is gone."""
        kept = self._kept.get(name)
        if kept is not None:
            return kept
        raw = await self._talk.call("HGET", self._talk.key("kinds"), name)
        if raw is None:
            return None
        kind = kind_of(raw)
        if len(self._kept) >= KINDS_MAX:
            self._kept.clear()
        self._kept[name] = kind
        return kind


async def closures_of_kinds(talk: Talk) -> AsyncIterator[set[str]]:
    """The closures of all kinds, some at a time. What is there from the first to the last is seen."""
    cursor = b"0"
    while True:
        cursor, page = await talk.call("HSCAN", talk.key("kinds"), cursor, "COUNT", SCANNED)
        yield {decode(said)[1] for said in page[1::2]}
        if cursor == b"0":
            return
