"""Things that belong to one event loop and are closed with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """What holds connections."""

    async def close(self) -> None:
        """Let go of them."""


T = TypeVar("T", bound=Closable)


class PerLoop(Generic[T]):
    """One ``T`` for each event loop that asks."""

    def __init__(self) -> None:
        self._found: dict[asyncio.AbstractEventLoop, tuple[T, AsyncGenerator[None, None]]] = {}

    async def here(self, make: Callable[[], T]) -> T:
        """That of the running loop, made at the first call."""
        loop = asyncio.get_running_loop()
        found = self._found.get(loop)
        if found is None:
            for other in [one for one in list(self._found) if one.is_closed()]:
                self._found.pop(other, None)
            made = make()
            guard = self._until_the_loop_ends(loop, made)
            found = self._found[loop] = (made, guard)
            await anext(guard)
        return found[0]

    async def _until_the_loop_ends(self, loop: asyncio.AbstractEventLoop, made: T) -> AsyncGenerator[None, None]:
        """A loop that is shut down in order closes its asynchronous generators: the one moment it tells anybody."""
        try:
            yield
        finally:
            self._found.pop(loop, None)
            await made.close()
