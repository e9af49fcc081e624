"""What a row store has to offer so that the ports can stand on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from plaita.backends.limits import Limits
from plaita.backends.rows import Rows

T = TypeVar("T")


class Gate(Protocol):
    """The way in. Both calls run the function on the rows of one transaction."""

    limits: Limits

    async def write(self, verb: Callable[[Rows], T]) -> T:
        """Run a verb and keep what it wrote; an exception keeps nothing. ``Unavailable``: the outcome is unknown."""

    def read(self, question: Callable[[Rows], T]) -> T:
        """Run a question that writes nothing."""

    def durability(self) -> str:
        """What an accepted write survives: ``memory`` the death of a worker, ``local`` also a power cut."""
