"""Waits, mailbox and consumed events in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from heapq import merge
from itertools import islice
from typing import TypeAlias

from plaita.backends.memory.runs import MemoryRuns
from plaita.backends.memory.tables import Journal, Tables
from plaita.backends.rows import EventRow, RunRow, WaitRow
from plaita.ports.values import TERMINAL, Mail, WaitId

Listening: TypeAlias = Mapping[tuple[str, str | None], list[tuple[int, int, WaitId]]]
"""By type and key: the number it was armed at, the number of the run, and the wait; in that order."""


class MemoryWaits:
    """Waits of one transaction: copied when loaded, stored when saved."""

    def __init__(self, tables: Tables, journal: Journal, runs: MemoryRuns) -> None:
        self._tables, self._journal, self._runs = tables, journal, runs
        self._loaded: dict[int, dict[WaitId, WaitRow]] = {}
        self._found: tuple[int, Listening] | None = None

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
        waits = [self._listening().get((event.event_type, key), []) for key in {None, event.key}]
        later = merge(*(islice(found, bisect_right(found, after, key=lambda one: one[0]), None) for found in waits))
        fitting = (
            (self._runs.at(rid), wait_id, arm)
            for arm, rid, wait_id in later
            if arm < event.number and self._runs.at(rid).status not in TERMINAL
        )
        return list(islice(fitting, limit))

    def _listening(self) -> Listening:
        """The waits that an event may answer: made once, and again after a write."""
        if self._found is None or self._found[0] != self._journal.length:
            found = defaultdict(list)
            for rid, belongings in self._tables.belongings.items():
                for wait_id, wait in belongings.waits.items():
                    if wait.kind == "event" and wait.state == "open":
                        found[wait.event_type, wait.key].append((wait.arm, rid, wait_id))
            for waits in found.values():
                waits.sort()
            self._found = self._journal.length, found
        return self._found[1]

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
