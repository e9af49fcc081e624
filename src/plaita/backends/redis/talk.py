"""Saying a verb to the store: the links, the scripts, and where the time comes from."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, Final, Literal

from plaita.backends.limits import Limits
from plaita.backends.redis.confirming import Confirming
from plaita.backends.redis.keys import PREFIX, key
from plaita.backends.redis.link import Link
from plaita.backends.redis.refusals import OtherType
from plaita.backends.redis.scripts import GIVEN_CLOCK, LIBRARIES, SERVER_CLOCK, Arg, Scripts
from plaita.base.clock import Clock
from plaita.base.errors import Unavailable

Durability = Literal["local", "replica"]

BULK: Final = frozenset(("publish", "carry_on", "prune"))
"""Verbs whose replies may be long in coming: those of runs do not wait behind them."""


EDGES: Final = frozenset(("submit", "adopt", "wake", "decide", "publish", "cancel", "reopen", "offer", "replay"))
"""Verbs that accept something from outside, which a replica is to have before the caller is told. ``accept`` tells
nobody: a replica has either the message or its effect."""


@dataclass(frozen=True, slots=True)
class Links:
    """The connections of one process: for the verbs of runs, for what is large, and for what waits for a replica."""

    main: Link
    bulk: Link
    edge: Link

    async def close(self) -> None:
        """Give all of them back."""
        for link in (self.main, self.bulk, self.edge):
            await link.close()


class Talk:
    """``clock`` ``None``: the server's own time; another clock is sent along with every verb."""

    def __init__(self, links: Links, limits: Limits, clock: Clock | None, prefix: str = PREFIX) -> None:
        self.limits = limits
        self._links, self._clock, self._prefix = links, clock, prefix
        self._confirming = Confirming(links.edge, limits.confirm_ms)
        self._streams = limits.streams.keys(prefix)
        self._scripts = Scripts(limits, prefix=prefix, clock=SERVER_CLOCK if clock is None else GIVEN_CLOCK)

    @property
    def name(self) -> str:
        return self._links.main.name

    def key(self, name: str, *parts: str | int) -> str:
        return self._streams.get(name) or key(name, *parts, prefix=self._prefix)

    def run(self, verb: str, **values: Any) -> Awaitable[Any]:
        """Run a verb; its reply. Raises ``Unavailable``: the outcome is unknown."""
        if self._waits(verb, values):
            return self._replicated(verb, values)
        return self._sent(self._links.bulk if verb in BULK else self._links.main, verb, values)

    async def run_durably(self, verb: str, **values: Any) -> tuple[Any, Durability]:
        """Run a verb; its reply, and what keeps its effect. What comes from outside and what ends a run waits for a
        replica where the limits say so; when none has it in time that is counted. Raises ``Unavailable``."""
        if not self._waits(verb, values):
            return await self.run(verb, **values), "local"
        reply = await self._sent(self._links.edge, verb, values)
        return reply, await self._confirmed()

    async def _replicated(self, verb: str, values: dict[str, Any]) -> Any:
        reply, _ = await self.run_durably(verb, **values)
        return reply

    def _waits(self, verb: str, values: Mapping[str, Any]) -> bool:
        return bool(self.limits.confirm_ms) and (verb in EDGES or (verb == "settle" and values["kind"] == "end"))

    def _sent(self, link: Link, verb: str, values: Mapping[str, Any]) -> asyncio.Future[Any]:
        script = self._scripts[verb]
        args = script.pack(values)
        if self._clock is not None:
            args.append(self._clock.now_ms())
        return link.run(script, args)

    async def _confirmed(self) -> Durability:
        if await self._confirming.confirmed():
            return "replica"
        with suppress(Unavailable):
            await self.call("HINCRBY", self.key("counters"), "replica_missed", 1)
        return "local"

    async def call(self, *command: Arg) -> Any:
        """A plain read."""
        return await self._links.main.call(*command)

    async def foreign(self, *command: Arg) -> Any:
        """A plain read of a key that others write; ``None`` where it holds something of another type."""
        with suppress(OtherType):
            return await self.call(*command)
        return None

    async def tidy(self) -> None:
        """Remove the libraries of other releases and limits: whoever still uses one loads it again."""
        listed = await self.call("FUNCTION", "LIST", "LIBRARYNAME", f"{LIBRARIES}*")
        for library in listed:
            name = library[1].decode()
            if name != self._scripts.name:
                with suppress(LookupError):
                    await self.call("FUNCTION", "DELETE", name)

    def aside(self) -> Talk:
        """The same, with everything on the connection for what is large."""
        talk = copy(self)
        talk._links = Links(self._links.bulk, self._links.bulk, self._links.edge)
        return talk
