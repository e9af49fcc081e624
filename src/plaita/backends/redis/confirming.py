"""Waiting for a replica: one question at a time, which answers for everybody who wrote before it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from plaita.backends.redis.link import Link
from plaita.base.errors import Unavailable

Answer = tuple[object, bool]
"""The connection it was asked on, and whether a replica has what was written on it before."""


class Confirming:
    """A connection that waits does nothing else. So who comes while one waits is answered by the next question, however
    many they are: nobody waits for longer than two."""

    def __init__(self, link: Link, confirm_ms: int) -> None:
        self._link, self._confirm_ms = link, confirm_ms
        self._asked: asyncio.Task[Answer] | None = None
        self._next: asyncio.Task[Answer] | None = None

    async def confirmed(self) -> bool:
        """Whether a replica has what was written last on this connection. One that was opened since knows nothing."""
        line = self._link.line
        if self._next is None or self._next.get_loop() is not asyncio.get_running_loop():
            before, self._asked = self._asked, None
            self._next = asyncio.create_task(self._ask(before))
        asked_on, has = await asyncio.shield(self._next)
        return has and asked_on is line

    async def _ask(self, before: asyncio.Task[Answer] | None) -> Answer:
        if before is not None and before.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([before])
        self._asked, self._next = self._next, None
        line, has = self._link.line, False
        with suppress(Unavailable):
            has = bool(await self._link.call("WAIT", 1, self._confirm_ms)) and self._link.line is line
        return line, has
