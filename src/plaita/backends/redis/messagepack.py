"""Maps of texts as the scripts pack them."""

from __future__ import annotations

from typing import Final

WIDTHS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDE: 2, 0xDF: 4}
"""MessagePack: how wide the length of a text or of a map is; that of a short one is in its first byte."""
SHORT: Final = 0x1F


def texts_of(packed: bytes) -> list[bytes]:
    """Names and values of a map of texts, as ``cmsgpack`` packs it."""
    found: list[bytes] = []
    at = 1 + WIDTHS.get(packed[0], 0) if packed else 0
    while at < len(packed):
        start = at + 1 + WIDTHS.get(packed[at], 0)
        size = int.from_bytes(packed[at + 1 : start], "big") if start > at + 1 else packed[at] & SHORT
        found.append(packed[start : start + size])
        at = start + size
    return found
