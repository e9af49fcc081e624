"""Durations: a number of milliseconds, digits, or ISO 8601 without years and months."""

from __future__ import annotations

import re
from typing import Final

DAY_MS: Final = 86_400_000
_ISO = re.compile(
    r"P(?=.)(?:(?P<w>\d+(?:\.\d+)?)W)?(?:(?P<d>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=.)(?:(?P<h>\d+(?:\.\d+)?)H)?(?:(?P<m>\d+(?:\.\d+)?)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
_UNIT_MS = {"w": 604_800_000, "d": DAY_MS, "h": 3_600_000, "m": 60_000, "s": 1000}
_DIGITS = re.compile(r"\d{1,15}", re.ASCII)


def parse_duration_ms(value: object) -> int:
    """Milliseconds of ``1500``, ``"1500"`` or ``"PT1.5S"``; raises ``ValueError`` in words a person can act on."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        shown = "null" if value is None else type(value).__name__
        raise ValueError(f"a duration is milliseconds or ISO 8601 text, not {shown}")
    if isinstance(value, str):
        if _DIGITS.fullmatch(value):
            return int(value)
        match = _ISO.fullmatch(value)
        if match is None:
            raise ValueError(f"{value!r} is not a duration; write milliseconds (1500) or ISO 8601 (PT1.5S)")
        total = sum(float(n) * _UNIT_MS[unit] for unit, n in match.groupdict().items() if n)
        value = total
    if not 0 <= value < 10**15:
        raise ValueError(f"{value} ms is out of range")
    return int(value)
