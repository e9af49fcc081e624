"""``ProcessRegistry``: rows say who is there, file locks say who is alive."""

from __future__ import annotations

from pathlib import Path

from plaita.backends.rows import Rows
from plaita.backends.sqlite.gate import SqliteGate
from plaita.backends.sqlite.liveness import lock_file
from plaita.backends.verbs.claim import release
from plaita.ports.processes import Process


class LockedProcesses:
    """The processes of one store as seen from one backend."""

    def __init__(self, gate: SqliteGate, path: Path) -> None:
        self._sqlite, self._path = gate, path
        self._announced: dict[str, int] = {}

    async def announce(self, process: Process) -> bool:
        is_new = process.holder not in self._announced
        if not is_new and await self._sqlite.write(lambda r: r.shelf.renew_process(process)):
            return True
        # The lock is taken inside the transaction: nobody sees the row of a process that does not hold its byte yet.
        locks = lock_file(self._path)
        tried: list[int] = []

        def verb(rows: Rows) -> int:
            rows.shelf.drop_process(process.holder)
            number = rows.shelf.add_process(process)
            tried.append(number)
            locks.hold(number)
            return number

        number = await self._sqlite.write(verb)
        for byte in tried:
            if byte != number:
                locks.let_go(byte)
        self._announced[process.holder] = number
        return is_new

    async def withdraw(self, holder: str) -> None:
        def verb(rows: Rows) -> None:
            rows.shelf.drop_process(holder)
            release(rows, holder)

        await self._sqlite.write(verb)
        byte = self._announced.pop(holder, None)
        if byte is not None:
            lock_file(self._path).let_go(byte)

    async def living(self) -> list[Process]:
        locks = lock_file(self._path)
        alive = []
        for byte, process in self._sqlite.read(lambda rows: rows.shelf.processes()):
            if locks.take_dead(byte):
                locks.let_go(byte)
            else:
                alive.append(process)
        return alive

    async def bury_dead(self) -> int:
        locks = lock_file(self._path)
        listed = self._sqlite.read(lambda rows: rows.shelf.processes())
        dead = [(byte, process.holder) for byte, process in listed if locks.take_dead(byte)]
        if not dead:
            return 0

        def verb(rows: Rows) -> None:
            for _, holder in dead:
                release(rows, holder)
                rows.shelf.drop_process(holder)

        try:
            await self._sqlite.write(verb)
        finally:
            for byte, _ in dead:
                locks.let_go(byte)
        return len(dead)

    async def withdraw_all(self) -> None:
        """Leave in order with everything this backend announced."""
        for holder in list(self._announced):
            await self.withdraw(holder)
