"""Events that programs publish beside the store, where the store has such a place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol


class Given(Protocol):
    """Which event was given to what, so that it is given once whoever hears it, and however often."""

    async def take(self, event_id: str) -> bool:
        """One process carries an event out; is it this one?"""

    async def let_go(self, event_id: str) -> None:
        """The event may be taken again."""

    async def give(self, event_id: str, run_id: str, wait_id: str) -> str:
        """To which wait of an execution the event is given: this one, unless it was given before."""


class Stored(Protocol):
    """Published events as they are looked through. Times are seconds since 1970."""

    async def cursor(self) -> str:
        """How far was looked: ``SECONDS`` or ``SECONDS|EVENT``; empty at first."""

    async def move(self, cursor: str) -> None:
        """From now on it was looked so far."""

    async def between(self, begin: float, end: float, limit: int) -> list[tuple[float, str]]:
        """Times and ids of published events, both ends included, in order: the first ``limit`` of them."""

    async def event(self, event_id: str) -> bytes | None:
        """The record of an event, JSON bytes."""


class ProgramEvents(Given, Stored, Protocol):
    """Published events, by hearing and by looking."""

    async def listen(self, tell: Callable[[bytes], Awaitable[None]]) -> None:
        """Call ``tell`` with each event that is published, one after another. Raises ``Unavailable`` when it ends."""

    async def my_turn(self, period_ms: int) -> bool:
        """One process looks for what was not heard in each period; is it this one now?"""
