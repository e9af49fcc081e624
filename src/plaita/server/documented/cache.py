"""Definitions that were read lately, by their documented keys."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from typing import TypeVar

from plaita.base.clock import Clock, SystemClock

V = TypeVar("V")


class RecentlyRead(MutableMapping[str, V]):
    """The latest ``size`` values, each for ``seconds`` after it was set."""

    def __init__(self, size: int, seconds: float, clock: Clock | None = None) -> None:
        self.maxsize, self.ttl = max(1, size), seconds
        self._clock = clock or SystemClock()
        self._kept: OrderedDict[str, tuple[float, V]] = OrderedDict()

    def __getitem__(self, key: str) -> V:
        until, value = self._kept[key]
        if until <= self._clock.elapsed_ms():
            del self._kept[key]
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: V) -> None:
        self._kept[key] = (self._clock.elapsed_ms() + self.ttl * 1000, value)
        self._kept.move_to_end(key)
        while len(self._kept) > self.maxsize:
            self._kept.popitem(last=False)

    def __delitem__(self, key: str) -> None:
        del self._kept[key]

    def __iter__(self) -> Iterator[str]:
        now = self._clock.elapsed_ms()
        return iter([key for key, (until, _) in self._kept.items() if until > now])

    def __len__(self) -> int:
        return len(list(iter(self)))
