"""Saying a verb to the store: the links, the scripts, and where the time comes from."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

from plaita.backends.limits import Limits
from plaita.backends.redis.keys import PREFIX, key
from plaita.backends.redis.link import Link
from plaita.backends.redis.scripts import GIVEN_CLOCK, LIBRARIES, SERVER_CLOCK, Arg, Scripts
from plaita.base.clock import Clock

BULK: Final = frozenset(("publish", "carry_on", "prune"))
"""Verbs whose replies may be long in coming: those of runs do not wait behind them."""


@dataclass(frozen=True, slots=True)
class Links:
    """The connections of one process: for the verbs of runs, and for what is large."""

    main: Link
    bulk: Link

    async def close(self) -> None:
        """Give both back."""
        await self.main.close()
        await self.bulk.close()


class Talk:
    """``clock`` ``None``: the server's own time; another clock is sent along with every verb."""

    def __init__(self, links: Links, limits: Limits, clock: Clock | None, prefix: str = PREFIX) -> None:
        self.limits, self.durability = limits, "local"
        self._links, self._clock, self._prefix = links, clock, prefix
        self._streams = limits.streams.keys(prefix)
        self._scripts = Scripts(limits, prefix=prefix, clock=SERVER_CLOCK if clock is None else GIVEN_CLOCK)

    @property
    def name(self) -> str:
        return self._links.main.name

    def key(self, name: str, *parts: str | int) -> str:
        return self._streams.get(name) or key(name, *parts, prefix=self._prefix)

    async def run(self, verb: str, **values: Any) -> Any:
        """Run a verb; its reply. Raises ``Unavailable``: the outcome is unknown."""
        script = self._scripts[verb]
        args = script.pack(**values)
        if self._clock is not None:
            args.append(self._clock.now_ms())
        link = self._links.bulk if verb in BULK else self._links.main
        return await link.run(script, args)

    async def call(self, *command: Arg) -> Any:
        """A plain read."""
        return await self._links.main.call(*command)

    async def tidy(self) -> None:
        """Remove the libraries of other releases and limits: whoever still uses one loads it again."""
        listed = await self.call("FUNCTION", "LIST", "LIBRARYNAME", f"{LIBRARIES}*")
        for library in listed:
            name = library[1].decode()
            if name != self._scripts.library:
                with suppress(LookupError):
                    await self.call("FUNCTION", "DELETE", name)

    def aside(self) -> Talk:
        """The same, with everything on the connection for what is large."""
        talk = copy(self)
        talk._links = Links(self._links.bulk, self._links.bulk)
        return talk
