"""The memory backend: the same verbs on tables of this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from plaita.backends.gate import Gate
from plaita.backends.limits import Limits
from plaita.backends.memory.ledger import MemoryEvents, MemoryLedger
from plaita.backends.memory.messages import MemoryMessages
from plaita.backends.memory.record import MemoryRecord
from plaita.backends.memory.runs import MemoryRuns
from plaita.backends.memory.shelf import MemoryShelf, MemoryTasks
from plaita.backends.memory.tables import Journal, Tables
from plaita.backends.memory.waits import MemoryWaits
from plaita.backends.ports.desk import GatedDesk
from plaita.backends.ports.inbox import GatedInbox
from plaita.backends.ports.queries import GatedQueries
from plaita.backends.ports.runs import GatedRuns
from plaita.backends.rows import Rows
from plaita.backends.verbs.claim import release
from plaita.base.clock import Clock, SystemClock
from plaita.base.errors import NotSupported
from plaita.policy.lease import plan_lease
from plaita.ports.backend import Finding, Risk
from plaita.ports.processes import Process
from plaita.ports.values import RunId

T = TypeVar("T")
_POLL_MS = 50


class MemoryRows:
    """One transaction."""

    def __init__(self, tables: Tables, limits: Limits, now: int) -> None:
        self.now, self.limits = now, limits
        self.journal = Journal()
        self.runs = MemoryRuns(tables, self.journal, now)
        self.record = MemoryRecord(tables, self.journal, now)
        self.waits = MemoryWaits(tables, self.journal, self.runs)
        self.events = MemoryEvents(tables, self.journal, self.runs)
        self.ledger = MemoryLedger(tables, self.journal, self.runs)
        self.messages = MemoryMessages(tables, self.journal, self.runs)
        self.tasks = MemoryTasks(tables, self.journal)
        self.shelf = MemoryShelf(tables, self.journal)


class MemoryGate:
    """Runs one verb after the other; ``stirred`` is set by every write."""

    def __init__(self, clock: Clock, limits: Limits) -> None:
        self._clock, self.limits = clock, limits
        self._tables = Tables()
        self.stirred = asyncio.Event()

    async def write(self, verb: Callable[[Rows], T]) -> T:
        rows = MemoryRows(self._tables, self.limits, self._clock.now_ms())
        try:
            answer = verb(rows)
            rows.runs.flush()
        except BaseException:
            rows.journal.undo()
            raise
        if rows.runs.stirred:
            self.stirred.set()
        return answer

    def read(self, question: Callable[[Rows], T]) -> T:
        return question(MemoryRows(self._tables, self.limits, self._clock.now_ms()))

    def durability(self) -> str:
        return "memory"


class MemoryBackend(GatedRuns, GatedInbox, GatedDesk, GatedQueries):
    """A store that lives as long as the process. ``limits`` overrides what ``lease_ms`` and ``cap`` say."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        lease_ms: int = 10_000,
        cap: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._memory = MemoryGate(clock or SystemClock(), limits or Limits(lease=plan_lease(lease_ms), cap=cap))
        gate: Gate = self._memory
        super().__init__(gate)

    @property
    def name(self) -> str:
        return "memory:"

    async def hint(self, timeout_ms: int) -> None:
        due = self._memory.read(lambda rows: rows.runs.next_due())
        if due is not None:
            now = self._memory.read(lambda rows: rows.now)
            timeout_ms = min(timeout_ms, due - now if due > now else _POLL_MS)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._memory.stirred.wait()
        except TimeoutError:
            return
        self._memory.stirred.clear()

    async def announce(self, process: Process) -> bool:
        def verb(rows: Rows) -> None:
            if not rows.shelf.renew_process(process):
                rows.shelf.add_process(process)

        await self._memory.write(verb)
        return True

    async def withdraw(self, holder: str) -> None:
        def verb(rows: Rows) -> None:
            rows.shelf.drop_process(holder)
            release(rows, holder)

        await self._memory.write(verb)

    async def living(self) -> list[Process]:
        return [process for _, process in self._memory.read(lambda rows: rows.shelf.processes())]

    async def bury_dead(self) -> int:
        """Nobody can die without this store."""
        return 0

    def on_mail(self, tell: Callable[[RunId], None]) -> bool:
        return False

    def on_command(self, instance: str, tell: Callable[[bytes], None]) -> bool:
        return False

    async def risks(self) -> list[Risk]:
        return [Risk("everything is gone when this process ends", "--store sqlite:///PATH")]

    async def examine(self) -> list[Finding]:
        return [Finding("durability", "warning", risk.message, risk.hint) for risk in await self.risks()]

    async def backup(self, path: Path, *, replace: bool = True) -> None:
        raise NotSupported("a store in memory cannot be copied", "only a store in a file can")

    async def close(self) -> None:
        """Nothing to give back."""
