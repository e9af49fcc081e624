"""The frames of a run: one packed value in its hash while they are small, else a hash of their own."""

from __future__ import annotations

import asyncio
from typing import Final

from plaita.backends.redis.codec import pairs
from plaita.backends.redis.talk import Talk

WIDTHS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDE: 2, 0xDF: 4}
"""MessagePack: how wide the length of a text or of a map is; that of a short one is in its first byte."""
SHORT: Final = 0x1F


async def read_frames(talk: Talk, run_id: str) -> dict[str, bytes]:
    """Plain reads, so that megabytes pass through no script. What moves between the two is found by the second."""
    packed, beside = await asyncio.gather(
        talk.call("HGET", talk.key("run", run_id), "f"), talk.call("HGETALL", talk.key("frames", run_id))
    )
    return pairs(beside or texts_of(packed or b""))


def texts_of(packed: bytes) -> list[bytes]:
    """Names and values of a map of texts, as ``lua/framing.lua`` packs it."""
    found: list[bytes] = []
    at = 1 + WIDTHS.get(packed[0], 0) if packed else 0
    while at < len(packed):
        start = at + 1 + WIDTHS.get(packed[at], 0)
        size = int.from_bytes(packed[at + 1 : start], "big") if start > at + 1 else packed[at] & SHORT
        found.append(packed[start : start + size])
        at = start + size
    return found
