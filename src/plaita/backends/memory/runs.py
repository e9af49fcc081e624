"""Headers in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import TypeVar

from plaita.backends.memory.tables import Belongings, Journal, Tables
from plaita.backends.rows import RunFilter, RunRow, StartRow, Takeovers
from plaita.ports.values import TERMINAL, RunId

V = TypeVar("V")


class MemoryRuns:
    """Runs of one transaction: a row is copied when it is loaded and put back when the transaction ends."""

    def __init__(self, tables: Tables, journal: Journal, now: int) -> None:
        self._tables, self._journal, self.now = tables, journal, now
        self._loaded: dict[int, RunRow] = {}
        self.stirred = False

    def load(self, run_id: RunId) -> RunRow | None:
        rid = self._tables.ids.get(run_id)
        if rid is None:
            rid = self._tables.ids.get(self._tables.names.get(run_id, RunId("")))
        return None if rid is None else self.at(rid)

    def give_name(self, name: str, run_id: RunId) -> None:
        self._journal.put(self._tables.names, name, run_id)

    def at(self, rid: int) -> RunRow:
        run = self._loaded.get(rid)
        if run is None:
            run = self._loaded[rid] = copy(self._tables.runs[rid])
        return run

    def add(self, start: StartRow, incarnation: str, generation: int, born: int) -> RunRow:
        rid = self._journal.count(self._tables.counters, "rid")
        s = start.start
        run = RunRow(rid, s.run_id, incarnation, s.tenant, s.queue, s.priority, born, generation=generation)
        self._journal.put(self._tables.runs, rid, copy(run))
        self._journal.put(self._tables.ids, s.run_id, rid)
        self._journal.put(self._tables.belongings, rid, Belongings(start))
        self._loaded[rid] = run
        return run

    def drop(self, run: RunRow) -> None:
        for task in [t for t in self._tables.tasks.values() if t.run_id == run.run_id]:
            self._journal.cut(self._tables.tasks, task.task_id)
        self._journal.cut(self._tables.ids, run.run_id)
        for name in [name for name, run_id in self._tables.names.items() if run_id == run.run_id]:
            self._journal.cut(self._tables.names, name)
        self._journal.cut(self._tables.runs, run.rid)
        self._journal.cut(self._tables.belongings, run.rid)
        self._journal.cut(self._tables.due, run.rid)
        self._journal.cut(self._tables.held, run.rid)
        self._loaded.pop(run.rid, None)

    def due(self, queues: Sequence[str], only: RunId | None, *, takeovers: Takeovers, limit: int) -> list[RunRow]:
        self.flush()
        rows = (self._tables.runs[rid] for rid, at_ms in self._tables.due.items() if at_ms <= self.now)
        found = [
            r
            for r in rows
            if (r.nonce is None or takeovers == "all" or (takeovers == "proven" and r.tries == 0))
            and (r.queue in queues if only is None else r.run_id == only or r.run_id.startswith(f"{only}."))
        ]
        found.sort(key=lambda r: (-r.priority, r.due, r.rid))
        return [self.at(r.rid) for r in found[:limit]]

    def next_due(self) -> int | None:
        return min(self._tables.due.values(), default=None)

    def due_within(self, after: int, until: int) -> list[RunRow]:
        self.flush()
        return [self.at(rid) for rid, at_ms in self._tables.due.items() if after < at_ms <= until]

    def held(self, nonce: str) -> list[RunRow]:
        self.flush()
        return [self.at(rid) for rid, owner in self._tables.held.items() if owner == nonce]

    def held_by(self, holder: str) -> list[RunRow]:
        self.flush()
        return [self.at(rid) for rid, owner in self._tables.held.items() if owner.startswith(f"{holder}.")]

    def slots(self, tenant: str) -> int:
        self.flush()
        return sum(r.slot == 1 for r in self._tables.runs.values() if r.tenant == tenant)

    def ended_before(self, at_ms: int, limit: int) -> list[RunRow]:
        old = [r.rid for r in self._tables.runs.values() if r.ended is not None and r.ended < at_ms]
        return [self.at(rid) for rid in old[:limit]]

    def page(self, wanted: RunFilter) -> list[RunRow]:
        all_runs, beyond = self._tables.runs.values(), wanted.beyond
        rows = iter(all_runs) if wanted.oldest_first else reversed(all_runs)
        found = (r for r in rows if beyond is None or (r.rid > beyond if wanted.oldest_first else r.rid < beyond))
        return [copy(r) for r, _ in zip(self._fitting(found, wanted), range(wanted.limit), strict=False)]

    def live(self) -> list[RunRow]:
        self.flush()
        return [self.at(r.rid) for r in list(self._tables.runs.values()) if r.status not in TERMINAL]

    def flush(self) -> None:
        """Put changed headers back, with the indexes that follow from them."""
        tables, journal = self._tables, self._journal
        for rid, run in self._loaded.items():
            if tables.runs[rid] != run:
                journal.put(tables.runs, rid, copy(run))
                self.stirred |= run.due is not None and (run.nonce is None or run.due <= self.now)
                _index(journal, tables.due, rid, run.due)
                _index(journal, tables.held, rid, run.nonce)

    def _fitting(self, rows: Iterator[RunRow], wanted: RunFilter) -> Iterator[RunRow]:
        for run in rows:
            start = self._tables.belongings[run.rid].start.start
            if (
                wanted.status in ("", run.status)
                and wanted.tenant in ("", run.tenant)
                and wanted.flow_id in ("", start.flow_id)
                and wanted.business_key in ("", start.business_key)
                and (not wanted.tag or wanted.tag in start.tags)
            ):
                yield run


def _index(journal: Journal, index: dict[int, V], rid: int, value: V | None) -> None:
    if value is None:
        journal.cut(index, rid)
    elif index.get(rid) != value:
        journal.put(index, rid, value)
