"""Waits, mailbox and consumed events in memory."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from plaita.backends.memory.runs import MemoryRuns
from plaita.backends.memory.tables import Journal, Tables
from plaita.backends.rows import EventRow, RunRow, WaitRow
from plaita.ports.values import TERMINAL, Mail, WaitId


class MemoryWaits:
    """Waits of one transaction: copied when loaded, stored when saved."""

    def __init__(self, tables: Tables, journal: Journal, runs: MemoryRuns) -> None:
        self._tables, self._journal, self._runs = tables, journal, runs
        self._loaded: dict[int, dict[WaitId, WaitRow]] = {}

    def of(self, run: RunRow) -> dict[WaitId, WaitRow]:
        waits = self._loaded.get(run.rid)
        if waits is None:
            stored = self._tables.belongings[run.rid].waits
            waits = self._loaded[run.rid] = {wait_id: copy(wait) for wait_id, wait in stored.items()}
        return waits

    def add(self, run: RunRow, wait: WaitRow) -> None:
        self.of(run)[wait.wait_id] = wait
        self.save(run, wait)

    def save(self, run: RunRow, wait: WaitRow) -> None:
        self._journal.put(self._tables.belongings[run.rid].waits, wait.wait_id, copy(wait))

    def listening(self, event: EventRow, after: int, limit: int) -> list[tuple[RunRow, WaitId, int]]:
        found = [
            (wait.arm, rid, wait_id)
            for rid, belongings in self._tables.belongings.items()
            for wait_id, wait in belongings.waits.items()
            if wait.kind == "event"
            and wait.state == "open"
            and wait.event_type == event.event_type
            and wait.key in (None, event.key)
            and after < wait.arm < event.number
            and self._runs.at(rid).status not in TERMINAL
        ]
        return [(self._runs.at(rid), wait_id, arm) for arm, rid, wait_id in sorted(found)[:limit]]

    def mailbox(self, run: RunRow) -> tuple[Mail, ...]:
        return tuple(m for _, m in sorted(self._tables.belongings[run.rid].mailbox.items()))

    def post(self, run: RunRow, mail: Mail) -> None:
        self._journal.put(self._tables.belongings[run.rid].mailbox, mail.number, mail)

    def unpost(self, run: RunRow, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._journal.cut(self._tables.belongings[run.rid].mailbox, number)

    def consume(self, run: RunRow, number: int) -> None:
        self._journal.put(self._tables.belongings[run.rid].consumed, number, None)

    def release(self, run: RunRow, number: int) -> None:
        self._journal.cut(self._tables.belongings[run.rid].consumed, number)

    def forget_consumed(self, run: RunRow) -> None:
        consumed = self._tables.belongings[run.rid].consumed
        for number in list(consumed):
            self._journal.cut(consumed, number)
