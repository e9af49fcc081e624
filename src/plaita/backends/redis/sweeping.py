"""Definitions that nobody needs: found by looking at what has one, removed if they were not used meanwhile.

Nothing counts who needs a definition. What has one names it: versions of flows, and the kinds of runs and of promised
children. All of them are looked at, one after the other. Whatever comes to have a definition in between makes it young
in the same step, and the function that removes definitions passes over those that are young.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Final

from plaita.backends.redis.kinds import closures_of_kinds
from plaita.backends.redis.talk import Talk
from plaita.base.json import decode

LOOKED_AT: Final = 1_000
REMOVED: Final = 100


async def sweep(talk: Talk, older_than_ms: int) -> None:
    """Remove the closures that were used last before that time and that no version, run or promised child has."""
    talk = talk.aside()
    spare = await _unused(talk, older_than_ms)
    if spare:
        spare -= await _published(talk)
        async for closures in closures_of_kinds(talk):
            spare -= closures
    left = sorted(spare)
    for i in range(0, len(left), REMOVED):
        await talk.run("forget_closures", older=older_than_ms, closures=left[i : i + REMOVED])


async def _unused(talk: Talk, older_than_ms: int) -> set[str]:
    """Read by rank: one that is used meanwhile moves back, and another may be passed over until the next time."""
    found: set[str] = set()
    for first in count(0, LOOKED_AT):
        page = await talk.call("ZRANGE", talk.key("closures_used"), first, first + LOOKED_AT - 1, "WITHSCORES")
        old = {closure.decode() for closure, at in zip(page[::2], page[1::2], strict=True) if float(at) < older_than_ms}
        found |= old
        if len(old) < LOOKED_AT:
            break
    return found


async def _published(talk: Talk) -> set[str]:
    found: set[str] = set()
    for name in await talk.call("ZRANGE", talk.key("flows"), 0, -1):
        flow_id = name.decode()
        versions = await talk.call("ZRANGE", talk.key("versions", flow_id), 0, -1)
        rows = await asyncio.gather(
            *(talk.call("GET", talk.key("version", flow_id, version.decode())) for version in versions)
        )
        found |= {decode(row)[0] for row in rows if row is not None}
    return found
