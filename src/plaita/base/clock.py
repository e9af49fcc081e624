"""Time and chance as arguments. The only module that reads the machine's clock."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

# CLOCK_BOOTTIME runs while a laptop sleeps; macOS's monotonic clock has no such twin and stops.
_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


class Clock(Protocol):
    """What a shell needs to know about time. Times are milliseconds."""

    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970 (UTC)."""

    def elapsed_ms(self) -> float:
        """A clock that only grows and runs during sleep; its zero means nothing."""


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def elapsed_ms(self) -> float:
        return time.clock_gettime(_ELAPSED) * 1000


_secret: random.Random = secrets.SystemRandom()
_chance = random.Random()


def new_id() -> str:
    """A short random id: 20 characters, 100 bits, lower case, no look-alikes."""
    bits = _secret.getrandbits(100)
    return "".join(_ALPHABET[bits >> shift & 31] for shift in range(0, 100, 5))


def roll() -> float:
    """Dice in [0, 1)."""
    return _chance.random()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Ids and dice of this process follow from a seed until the end of the block: for simulations, nothing else."""
    global _secret, _chance
    before = _secret, _chance
    _secret = _chance = random.Random(seed)
    try:
        yield
    finally:
        _secret, _chance = before
