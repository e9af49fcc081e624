"""Saying a verb to the store: a link, the scripts, and where the time comes from."""

from __future__ import annotations

from typing import Any

from plaita.backends.redis.keys import PREFIX, key
from plaita.backends.redis.link import Link
from plaita.backends.redis.scripts import GIVEN_CLOCK, SERVER_CLOCK, Arg, Scripts
from plaita.backends.rows import Limits
from plaita.base.clock import Clock


class Talk:
    """``clock`` ``None``: the server's own time; another clock is sent along with every verb."""

    def __init__(self, link: Link, limits: Limits, clock: Clock | None, prefix: str = PREFIX) -> None:
        self.limits, self.durability = limits, "local"
        self._link, self._clock, self._prefix = link, clock, prefix
        self._scripts = Scripts(limits, prefix=prefix, clock=SERVER_CLOCK if clock is None else GIVEN_CLOCK)

    @property
    def name(self) -> str:
        return self._link.name

    def key(self, name: str, *parts: str | int) -> str:
        return key(name, *parts, prefix=self._prefix)

    async def run(self, verb: str, **values: Any) -> Any:
        """Run a verb; its reply. Raises ``Unavailable``: the outcome is unknown."""
        script = self._scripts[verb]
        args = script.pack(**values)
        if self._clock is not None:
            args.append(self._clock.now_ms())
        return await self._link.run(script, args)

    async def call(self, *command: Arg) -> Any:
        """A plain read."""
        return await self._link.call(*command)
