"""Event log, outbox, quota queue, pulse and graves in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from itertools import islice

from plaita.backends.memory.runs import MemoryRuns
from plaita.backends.memory.tables import Journal, Tables
from plaita.backends.rows import EventRow, Grave, OutRow, Pulse, RunRow
from plaita.ports.values import RunId, Status


class MemoryEvents:
    """The number sequence and the event log."""

    def __init__(self, tables: Tables, journal: Journal, runs: MemoryRuns) -> None:
        self._tables, self._journal, self._runs = tables, journal, runs
        self._found: tuple[int, Mapping[tuple[str, str | None], list[int]]] | None = None

    def current(self) -> int:
        return self._tables.counters.get("event", 0)

    def next(self) -> int:
        return self._journal.count(self._tables.counters, "event")

    def find(self, event_id: str) -> EventRow | None:
        number = self._tables.event_ids.get(event_id)
        return None if number is None else self._tables.events[number]

    def at(self, number: int) -> EventRow:
        return self._tables.events[number]

    def put(self, event: EventRow) -> None:
        self._journal.put(self._tables.events, event.number, event)
        self._journal.put(self._tables.event_ids, event.event_id, event.number)

    def lowest(self, event_type: str, key: str | None, above: int, unconsumed_by: RunRow | None) -> int | None:
        consumed = self._tables.belongings[unconsumed_by.rid].consumed if unconsumed_by is not None else {}
        numbers = self._numbers().get((event_type, key), [])
        later = islice(numbers, bisect_right(numbers, above), None)
        return next((number for number in later if number not in consumed), None)

    def _numbers(self) -> Mapping[tuple[str, str | None], list[int]]:
        """The numbers of events by type and key, and by type alone: made once, and again after a write."""
        if self._found is None or self._found[0] != self._journal.length:
            found = defaultdict(list)
            for event in self._tables.events.values():
                for key in {None, event.key}:
                    found[event.event_type, key].append(event.number)
            self._found = self._journal.length, found
        return self._found[1]

    def forget(self, older_than_ms: int) -> None:
        oldest = min((run.born for run in self._runs.live()), default=self.current())
        fanning = {e.event for e in self._tables.outbox.values() if e.kind == "event"}
        for event in list(self._tables.events.values()):
            if event.at_ms < older_than_ms and event.number <= oldest and event.number not in fanning:
                self._journal.cut(self._tables.events, event.number)
                self._journal.cut(self._tables.event_ids, event.event_id)


class MemoryLedger:
    """Outbox, quota queue, pulse, graves."""

    def __init__(self, tables: Tables, journal: Journal, runs: MemoryRuns) -> None:
        self._tables, self._journal, self._runs = tables, journal, runs

    def push(self, entry: OutRow) -> None:
        number = self._journal.count(self._tables.counters, "outbox")
        self._journal.put(self._tables.outbox, number, replace(entry, number=number))
        self._runs.stirred = True

    def first(self) -> OutRow | None:
        return self._tables.outbox[min(self._tables.outbox)] if self._tables.outbox else None

    def entries(self) -> list[OutRow]:
        return [entry for _, entry in sorted(self._tables.outbox.items())]

    def event_pending(self, number: int) -> bool:
        return any(e.kind == "event" and e.event == number for e in self._tables.outbox.values())

    def move(self, number: int, cursor: int) -> None:
        self._journal.put(self._tables.outbox, number, replace(self._tables.outbox[number], cursor=cursor))

    def pop(self, number: int) -> None:
        self._journal.cut(self._tables.outbox, number)

    def enqueue(self, run: RunRow, kind: int) -> None:
        number = self._journal.count(self._tables.counters, "quota")
        self._journal.put(self._tables.quota, run.rid, (run.tenant, kind, number))

    def dequeue(self, run: RunRow) -> None:
        self._journal.cut(self._tables.quota, run.rid)

    def head(self, tenant: str, kind: int | None) -> RunRow | None:
        waiting = [
            (k, number, rid)
            for rid, (who, k, number) in self._tables.quota.items()
            if who == tenant and kind in (None, k)
        ]
        return self._runs.at(min(waiting)[2]) if waiting else None

    def parked(self) -> list[tuple[str, int]]:
        order = sorted((kind, number, tenant, rid) for rid, (tenant, kind, number) in self._tables.quota.items())
        return [(tenant, rid) for _, _, tenant, rid in order]

    def promotions(self, tenant: str) -> int:
        return self._journal.count(self._tables.promotions, tenant)

    def pulse(self) -> Pulse:
        return copy(self._tables.pulse.get("store") or Pulse())

    def save_pulse(self, pulse: Pulse) -> None:
        self._journal.put(self._tables.pulse, "store", pulse)

    def grave(self, run_id: RunId) -> Grave | None:
        return self._tables.graves.get(run_id)

    def bury(self, run_id: RunId, grave: Grave) -> None:
        self._journal.put(self._tables.graves, run_id, grave)

    def forget_graves(self, older_than_ms: int) -> None:
        for run_id in [k for k, grave in self._tables.graves.items() if grave.buried_ms < older_than_ms]:
            self._journal.cut(self._tables.graves, run_id)

    def by_status(self) -> dict[Status, int]:
        return dict(Counter(run.status for run in self._tables.runs.values()))

    def unheld(self) -> tuple[int, int | None]:
        held = self._tables.held
        found = [at for rid, at in self._tables.due.items() if at <= self._runs.now and rid not in held]
        return len(found), min(found, default=None)
