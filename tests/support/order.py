"""In which order tests are run by several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
LONG_S = 200
"""What is given more time than this is long."""


def long_first(items: Sequence[T], seconds: Callable[[T], float], processes: int) -> list[T]:
    """The items with the long ones first: one that began last would leave the other processes idle.

    Each process is given a stretch of the list, so each stretch begins with its part of them, the longest first.
    """
    long = sorted((item for item in items if seconds(item) > LONG_S), key=seconds, reverse=True)
    short = iter([item for item in items if seconds(item) <= LONG_S])
    found: list[T] = []
    for number in range(processes):
        size = (len(items) - len(found)) // (processes - number)
        first = long[number::processes]
        found += [*first, *islice(short, max(0, size - len(first)))]
    return found
