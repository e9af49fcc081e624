"""``InboxStore`` over a gate."""

from __future__ import annotations

from plaita.backends.gate import Gate
from plaita.backends.rows import Rows
from plaita.backends.verbs.accept import accept, offer
from plaita.backends.verbs.letters import discard, replay
from plaita.base.ids import check_cursor
from plaita.ports.inbox import (
    Accepted,
    DeadLetter,
    Deed,
    Discarded,
    NoLetter,
    NotReplayed,
    Offered,
    Replayed,
    Replaying,
)


class GatedInbox:
    """Messages of producers."""

    _gate: Gate

    async def offer(self, message_id: str, body: bytes) -> Offered:
        return await self._gate.write(lambda rows: offer(rows, message_id, body))

    async def accept(self, n: int) -> list[Accepted]:
        if not self._gate.read(lambda rows: rows.messages.first(1)):
            return []
        return await self._gate.write(lambda rows: accept(rows, n))

    async def dead_letters(self, *, limit: int = 100, cursor: str = "") -> tuple[list[DeadLetter], str]:
        check_cursor(cursor)
        found = self._gate.read(lambda rows: rows.messages.dead(limit + 1, cursor))
        following = found[limit - 1].letter_id if len(found) > limit else ""
        return found[:limit], following

    async def dead_letter(self, letter_id: str) -> tuple[DeadLetter, list[Deed]] | None:
        def look(rows: Rows) -> tuple[DeadLetter, list[Deed]] | None:
            letter = rows.messages.dead_letter(letter_id)
            return None if letter is None else (letter, rows.messages.deeds(letter_id))

        return self._gate.read(look)

    async def replay(self, asked: Replaying) -> Replayed | NotReplayed | NoLetter:
        return await self._gate.write(lambda rows: replay(rows, asked))

    async def discard(self, letter_id: str, actor: str) -> Discarded | NoLetter:
        return await self._gate.write(lambda rows: discard(rows, letter_id, actor))

    async def backlog(self) -> int:
        return self._gate.read(lambda rows: rows.messages.count())
