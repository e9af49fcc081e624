"""What a worker says of itself in the store, and the commands that reach it by its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from plaita.base.clock import Clock
from plaita.base.errors import Unavailable
from plaita.base.json import decode
from plaita.ports.backend import Backend
from plaita.ports.processes import Facts, Process, State
from plaita.telemetry import events as told
from plaita.telemetry.sink import Telemetry


class Commanded(Protocol):
    """Who obeys commands."""

    def leave(self, *, graceful: bool) -> None:
        """Stop: let runs reach their next commit, or cut them."""


class Presence:
    """The announcement of one worker. One without a name says once that it is there; one with a name says again what
    changed, and that it is still there, until it has left. ``active`` answers how many runs it holds."""

    def __init__(
        self, store: Backend, clock: Clock, telemetry: Telemetry, process: Process, active: Callable[[], int]
    ) -> None:
        self._store, self._clock, self._telemetry = store, clock, telemetry
        self._process, self._active = process, active
        self._state: State = "starting" if process.facts.instance else "running"
        self._left = False
        self._reachable = False
        self.said_ms = 0

    @property
    def state(self) -> State:
        """What it said last."""
        return self._state

    @property
    def facts(self) -> Facts:
        """What it says now."""
        now_ms = self._clock.now_ms()
        return replace(self._process.facts, state=self._state, active=self._active(), beat_ms=now_ms)

    async def enter(self) -> None:
        """Say for the first time that the process is there. Raises ``Unavailable``."""
        await self._store.announce(replace(self._process, facts=self.facts))
        self.said_ms = self._clock.now_ms()

    async def say(self, state: State) -> None:
        """Say in which state it is now. A store that is away hears it at the next beat."""
        self.become(state)
        await self._say()

    def become(self, state: State) -> None:
        """From now on it is in this state, which is not said."""
        self._state = state

    async def beat(self, stop: asyncio.Event, every_ms: int) -> None:
        """Say again and again that the process is there."""
        while not stop.is_set():
            try:
                async with asyncio.timeout(every_ms / 1000):
                    await stop.wait()
            except TimeoutError:
                await self._say()

    @property
    def is_listed(self) -> bool:
        """Whether the documented registry shows it now."""
        return self._reachable and self._process.facts.listed and not self._left

    def listen(self, worker: Commanded) -> None:
        """From now on the worker obeys what comes over the channel of its name, where the store has one."""
        if instance := self._process.facts.instance:
            self._reachable = self._store.on_command(instance, lambda raw: self._hear(worker, raw))

    def leave(self) -> None:
        """From now on nothing is said: the record that is about to go must not come back."""
        self._left, self._state = True, "stopped"

    async def _say(self) -> None:
        if self._left or not self._process.facts.instance:
            return
        try:
            if not await self._store.announce(replace(self._process, facts=self.facts)):
                self._telemetry.emit(told.STORE_FORGOT, store=self._store.name, holder=self._process.holder)
            self.said_ms = self._clock.now_ms()
        except Unavailable as e:
            self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb="announce", error=str(e))

    def _hear(self, worker: Commanded, raw: bytes) -> None:
        """One message: ``{"command": "stop" | "status", "graceful": bool}``; anything else has no effect."""
        try:
            said = decode(raw)
        except ValueError:
            said = None
        holder = self._process.holder
        match said:
            case {"command": "stop"}:
                self._telemetry.emit(told.COMMAND_HEARD, holder=holder, command="stop")
                worker.leave(graceful=said.get("graceful", True) is not False)
            case {"command": "status"}:
                facts = self.facts
                self._telemetry.emit(
                    told.WORKER_STATUS,
                    holder=holder,
                    state=facts.state,
                    running=facts.active,
                    concurrency=facts.concurrency,
                )
            case _:
                self._telemetry.emit(told.COMMAND_UNKNOWN, holder=holder, size=len(raw))
