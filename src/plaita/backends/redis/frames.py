"""The frames of a run: one packed value in its hash while they are small, else a hash of their own."""

from __future__ import annotations

import asyncio

from plaita.backends.redis.codec import pairs
from plaita.backends.redis.messagepack import texts_of
from plaita.backends.redis.talk import Talk


async def read_frames(talk: Talk, run_id: str) -> dict[str, bytes]:
    """Plain reads, so that megabytes pass through no script. What moves between the two is found by the second."""
    packed, beside = await asyncio.gather(
        talk.call("HGET", talk.key("run", run_id), "f"), talk.call("HGETALL", talk.key("frames", run_id))
    )
    return pairs(beside or texts_of(packed or b""))
