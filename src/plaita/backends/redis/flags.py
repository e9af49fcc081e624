"""Cancels that others ask for by setting the documented flag of an execution: looked for once a second."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from plaita.backends.redis.talk import Talk
from plaita.base.errors import Unavailable

EVERY_S: Final = 1.0
PORTION: Final = 300
"""Runs of each status that one look takes in, beside all that are held. A longer line takes more looks."""
ACTOR: Final = "flag"
"""Who cancelled, in the history."""


class FlagWatch:
    """Looks while this process works. However many do, the store is looked through once a second."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """From now on; beginning again changes nothing."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())

    def end(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def look(self) -> bool:
        """One look; false when there was one less than a second ago."""
        return bool(await self._talk.run("flags", n=PORTION, actor=ACTOR))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            with suppress(Unavailable):
                await self.look()
