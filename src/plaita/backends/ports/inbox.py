"""``InboxStore`` over a gate."""

from __future__ import annotations

from plaita.backends.gate import Gate
from plaita.backends.verbs.accept import accept, offer
from plaita.ports.inbox import Accepted, DeadLetter, Offered


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
        found = self._gate.read(lambda rows: rows.messages.dead(limit + 1, cursor))
        following = found[limit - 1][0] if len(found) > limit else ""
        return [letter for _, letter in found[:limit]], following

    async def backlog(self) -> int:
        return self._gate.read(lambda rows: rows.messages.count())
