"""What runs of one definition share, looked up by name. A name is made of what it says, so what was read stays true."""

from __future__ import annotations

from plaita.backends.redis.codec import KINDS_MAX, Kind, kind_of
from plaita.backends.redis.talk import Talk


class Kinds:
    """Kinds as they were read, up to a bound."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._kept: dict[str, Kind] = {}

    async def of(self, name: str) -> Kind:
        """The kind of that name."""
        kept = self._kept.get(name)
        if kept is not None:
            return kept
        kind = kind_of(await self._talk.call("HGET", self._talk.key("kinds"), name))
        if len(self._kept) >= KINDS_MAX:
            self._kept.clear()
        self._kept[name] = kind
        return kind
