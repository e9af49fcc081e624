"""The SQLite backend: one file, any number of processes on one machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from plaita.backends.gate import Gate
from plaita.backends.limits import Limits
from plaita.backends.ports.desk import GatedDesk
from plaita.backends.ports.inbox import GatedInbox
from plaita.backends.ports.queries import GatedQueries
from plaita.backends.ports.runs import GatedRuns
from plaita.backends.sqlite.connection import Synchronous
from plaita.backends.sqlite.copying import copy_store
from plaita.backends.sqlite.examining import examine
from plaita.backends.sqlite.gate import SqliteGate
from plaita.backends.sqlite.processes import LockedProcesses
from plaita.backends.verbs.quota import promote_all
from plaita.base.clock import Clock, SystemClock
from plaita.policy.lease import plan_lease
from plaita.ports.backend import Finding, Risk
from plaita.ports.processes import Process
from plaita.ports.values import RunId

POLL_MS = 20
"""How often a hint looks whether another process wrote."""
OVERDUE_MS = 50
"""How long a hint sleeps at most while something is due that this process did not take."""


class SqliteBackend(GatedRuns, GatedInbox, GatedDesk, GatedQueries):
    """A store in a file. ``limits`` overrides what ``lease_ms`` and ``cap`` say.

    ``synchronous`` ``FULL`` survives a power cut; ``NORMAL`` survives the death of processes. Belongs to the thread and
    event loop it is first used on; a thread of its own opens a backend of its own. Raises ``Unavailable``.
    """

    def __init__(
        self,
        path: str | Path,
        clock: Clock | None = None,
        *,
        lease_ms: int = 10_000,
        cap: int | None = None,
        synchronous: Synchronous = "FULL",
        limits: Limits | None = None,
    ) -> None:
        self._path, self._synchronous = Path(path), synchronous
        limits = limits or Limits(lease=plan_lease(lease_ms), cap=cap)
        self._sqlite = SqliteGate(self._path, clock or SystemClock(), limits, synchronous)
        gate: Gate = self._sqlite
        super().__init__(gate)
        self._processes = LockedProcesses(self._sqlite, self._path)
        self._version = self._sqlite.version()
        if self._sqlite.read(lambda rows: rows.ledger.parked()):
            self._sqlite.write_now(promote_all)

    @property
    def name(self) -> str:
        return f"sqlite:///{self._path}"

    async def hint(self, timeout_ms: int) -> None:
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._patience(timeout_ms) / 1000
        while not self._sqlite.stirred.is_set() and self._sqlite.version() == self._version:
            left = ends - loop.time()
            if left <= 0:
                return
            try:
                async with asyncio.timeout(min(left, POLL_MS / 1000)):
                    await self._sqlite.stirred.wait()
            except TimeoutError:
                continue
        self._sqlite.stirred.clear()
        self._version = self._sqlite.version()

    def _patience(self, timeout_ms: int) -> int:
        due, now = self._sqlite.read(lambda rows: (rows.runs.next_due(), rows.now))
        if due is None:
            return timeout_ms
        return min(timeout_ms, due - now if due > now else OVERDUE_MS)

    async def announce(self, process: Process) -> bool:
        return await self._processes.announce(process)

    async def withdraw(self, holder: str) -> None:
        await self._processes.withdraw(holder)

    async def living(self) -> list[Process]:
        return await self._processes.living()

    async def bury_dead(self) -> int:
        return await self._processes.bury_dead()

    def on_mail(self, tell: Callable[[RunId], None]) -> bool:
        return False

    def on_command(self, instance: str, tell: Callable[[bytes], None]) -> bool:
        return False

    async def risks(self) -> list[Risk]:
        return []

    async def examine(self) -> list[Finding]:
        return await asyncio.to_thread(examine, self._path, self._synchronous, SystemClock())

    async def backup(self, path: Path, *, replace: bool = True) -> None:
        await asyncio.to_thread(copy_store, self._path, path, replace=replace)

    async def close(self) -> None:
        await self._processes.withdraw_all()
        self._sqlite.close()
