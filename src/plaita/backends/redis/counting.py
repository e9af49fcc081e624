"""How much there is, from the sizes of the indexes."""

from __future__ import annotations

import asyncio

from plaita.backends.redis.talk import Talk
from plaita.ports.queries import Counts
from plaita.ports.values import STATUSES


async def counts(talk: Talk) -> Counts:
    """Plain reads, one round trip after the other where one needs the other; they are not of one moment."""
    now_ms, sizes, due, stream, dead = await asyncio.gather(
        talk.run("now"),
        asyncio.gather(*(talk.call("ZCARD", talk.key("by_status", status)) for status in STATUSES)),
        _due_places(talk),
        _stream(talk),
        talk.call("XLEN", talk.key("dlq")),
    )
    found = await asyncio.gather(*(_due_in(talk, place, now_ms) for place in due))
    since = min([at_ms for _, at_ms in found if at_ms is not None], default=None)
    length, pending, oldest_ms = stream
    by_status = dict(zip(STATUSES, sizes, strict=True))
    return Counts(by_status, sum(count for count, _ in found), since, length, pending, oldest_ms, dead)


async def _due_places(talk: Talk) -> list[str]:
    """The indexes of what is due and held by nobody."""
    queues = [name.decode() for name in await talk.call("SMEMBERS", talk.key("queues"))]
    listed = await asyncio.gather(*(talk.call("ZRANGE", talk.key("priorities", queue), 0, -1) for queue in queues))
    return [
        talk.key("due", queue, priority)
        for queue, names in zip(queues, listed, strict=True)
        for priority in sorted({0, *(int(name) for name in names)})
    ]


async def _due_in(talk: Talk, place: str, now_ms: int) -> tuple[int, int | None]:
    count, first = await asyncio.gather(
        talk.call("ZCOUNT", place, "-inf", now_ms), talk.call("ZRANGE", place, 0, 0, "WITHSCORES")
    )
    return count, int(float(first[1])) if count and first else None


async def _stream(talk: Talk) -> tuple[int, int, int | None]:
    """Entries, entries that somebody took, and when the oldest came: an id begins with its milliseconds."""
    inbox = talk.key("inbox")
    length, first = await asyncio.gather(
        talk.call("XLEN", inbox), talk.call("XRANGE", inbox, "-", "+", "COUNT", 1)
    )  # fmt: skip
    try:
        taken = (await talk.call("XPENDING", inbox, talk.limits.streams.group))[0]
    except RuntimeError:
        # There is no stream yet, or no group that reads it.
        taken = 0
    return length, taken, int(first[0][0].split(b"-")[0]) if first else None
