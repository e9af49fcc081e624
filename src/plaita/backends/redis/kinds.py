"""What runs of one definition share, looked up by name. A name is made of what it says, so what was read stays true."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from plaita.backends.redis.codec import Kind, kind_of
from plaita.backends.redis.talk import Talk

KEPT_MAX: Final = 1_000


class Kinds:
    """Kinds as they were read, up to a bound."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._kept: dict[str, Kind] = {}

    async def of(self, names: Iterable[str]) -> dict[str, Kind]:
        """The kinds of these names."""
        wanted = set(names)
        found = {name: self._kept[name] for name in wanted & self._kept.keys()}
        if missing := sorted(wanted - found.keys()):
            read = await self._talk.call("HMGET", self._talk.key("kinds"), *missing)
            found |= {name: kind_of(raw) for name, raw in zip(missing, read, strict=True)}
            self._kept = found if len(self._kept) + len(missing) > KEPT_MAX else self._kept | found
        return found
