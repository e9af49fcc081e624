"""Mail for runs that are held: fetched at once, where the store can tell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from plaita.base.clock import Clock
from plaita.base.errors import Unavailable
from plaita.ports.backend import Backend
from plaita.ports.values import RunId
from plaita.server.worker.lease import Holding, renew_once
from plaita.telemetry import events as told
from plaita.telemetry.sink import Telemetry


class Idle(Holding, Protocol):
    """A run that is held and may stand still."""

    @property
    def is_idle(self) -> bool: ...


class Mail:
    """Renews what is said to have mail: the answer of a renewal brings it. What is not idle asks by itself."""

    def __init__(
        self, store: Backend, clock: Clock, telemetry: Telemetry, held: Callable[[], Sequence[Idle]]
    ) -> None:  # fmt: skip
        self._store, self._clock, self._telemetry, self._held = store, clock, telemetry, held
        self._told: set[RunId] = set()
        self._fetching: asyncio.Task[None] | None = None
        self.is_told = False

    def listen(self) -> None:
        """From now on; ``is_told`` says whether the store tells at all."""
        self.is_told = self._store.on_mail(self._hear)

    def close(self) -> None:
        """Fetch nothing more."""
        if self._fetching is not None:
            self._fetching.cancel()

    async def look(self) -> None:
        """Ask for all, where nobody tells."""
        if not self.is_told:
            await renew_once(self._store, [a for a in self._held() if a.is_idle], self._clock)

    def _hear(self, run_id: RunId) -> None:
        self._told.add(run_id)
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._fetch())

    async def _fetch(self) -> None:
        while self._told:
            named, self._told = self._told, set()
            try:
                await renew_once(
                    self._store, [a for a in self._held() if a.lease_of[0] in named and a.is_idle], self._clock
                )
            except Unavailable as e:
                self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb="renew", error=str(e))
