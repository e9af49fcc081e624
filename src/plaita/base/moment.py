"""Times as people and documents write them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

LATEST_MS = 253_402_214_400_000
"""The last day of the year 9999, as it begins: a time that every time zone can show."""


def iso(ms: int | None) -> str | None:
    """Milliseconds since 1970 as ISO 8601 in UTC; times that ISO 8601 cannot write are the last one it can."""
    if ms is None:
        return None
    seconds, rest = divmod(min(ms, LATEST_MS), 1000)
    at = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_zone(name: str) -> bool:
    """Is this the name of a time zone known here, such as ``Europe/Berlin``?"""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True
