"""Headers in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from plaita.backends.rows import RunFilter, RunRow, StartRow, Takeovers
from plaita.backends.sqlite.codec import start_row
from plaita.backends.sqlite.record import SqliteRecord
from plaita.ports.values import TERMINAL, RunId

_FIELDS = tuple(f.name for f in fields(RunRow))
_LIGHT_FROM = _FIELDS.index("tries")
_COLUMNS = ", ".join(_FIELDS)
_LOAD = f"SELECT {_COLUMNS} FROM runs WHERE run_id = ?"
_AT = f"SELECT {_COLUMNS} FROM runs WHERE rid = ?"
_ADD = f"INSERT INTO runs ({_COLUMNS}) VALUES ({', '.join('?' * len(_FIELDS))})"
_SAVE = f"UPDATE runs SET {', '.join(f'{f} = ?' for f in _FIELDS[7:])} WHERE rid = ?"
_SAVE_LIGHT = f"UPDATE runs SET {', '.join(f'{f} = ?' for f in _FIELDS[_LIGHT_FROM:])} WHERE rid = ?"
_values = attrgetter(*_FIELDS)

_HELD: dict[Takeovers, str] = {
    "none": " AND nonce IS NULL",
    "proven": " AND (nonce IS NULL OR tries = 0)",
    "all": "",
}
_DUE_GROUP = "SELECT queue, priority, due FROM runs WHERE due IS NOT NULL"
_BELONGINGS = ("starts", "tags", "outcomes", "frames", "history", "waits", "mailbox", "consumed", "quota", "runs")


KNOWN_MAX = 1_000
Headers = dict[str, tuple[RunRow, tuple[Any, ...]]]
"""Headers as this connection last committed them, valid until another connection writes."""


class SqliteRuns:
    """Runs of one transaction: loaded once, written back by ``flush`` if they changed.

    A settle that keeps its run touches no indexed column, and then writes only the light half of the header.
    ``stirred``: something may have become due.
    """

    def __init__(
        self, db: sqlite3.Connection, now: int, record: SqliteRecord, known: Headers | None = None
    ) -> None:  # fmt: skip
        self._db, self.now, self._record = db, now, record
        self._known: Headers = {} if known is None else known
        self.stirred = False
        self._loaded: dict[int, tuple[RunRow, tuple[Any, ...]]] = {}
        self._ids: dict[str, RunRow] = {}

    def load(self, run_id: RunId) -> RunRow | None:
        run = self._ids.get(run_id)
        if run is not None:
            return run
        known = self._known.get(run_id)
        if known is not None:
            run = known[0]
            self._loaded[run.rid], self._ids[run_id] = known, run
            return run
        row = self._db.execute(_LOAD, (run_id,)).fetchone()
        if row is None:
            name = self._db.execute("SELECT run_id FROM names WHERE name = ?", (run_id,)).fetchone()
            return None if name is None else self.load(RunId(name[0]))
        return self._keep(row)

    def give_name(self, name: str, run_id: RunId) -> None:
        self._db.execute("INSERT OR REPLACE INTO names VALUES (?, ?)", (name, run_id))

    def at(self, rid: int) -> RunRow:
        known = self._loaded.get(rid)
        return known[0] if known is not None else self._keep(self._db.execute(_AT, (rid,)).fetchone())

    def add(self, start: StartRow, incarnation: str, generation: int, born: int) -> RunRow:
        s = start.start
        run = RunRow(0, s.run_id, incarnation, s.tenant, s.queue, s.priority, born, generation=generation)
        rid = self._db.execute(_ADD, (None, *_values(run)[1:])).lastrowid
        assert rid is not None
        run.rid = rid
        self._db.execute(f"INSERT INTO starts VALUES ({', '.join('?' * 15)})", start_row(rid, start))
        if s.tags:
            self._db.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?)", [(tag, rid) for tag in s.tags])
        self._loaded[rid], self._ids[s.run_id] = (run, _values(run)), run
        return run

    def drop(self, run: RunRow) -> None:
        self._record.flush()
        numbers = "SELECT number FROM tasks WHERE run_id = ?"
        self._db.execute(f"DELETE FROM approvers WHERE number IN ({numbers})", (run.run_id,))
        for table in ("tasks", "names"):
            self._db.execute(f"DELETE FROM {table} WHERE run_id = ?", (run.run_id,))
        for table in _BELONGINGS:
            self._db.execute(f"DELETE FROM {table} WHERE rid = ?", (run.rid,))
        self._loaded.pop(run.rid, None)
        self._ids.pop(run.run_id, None)
        self._known.pop(run.run_id, None)

    def due(self, queues: Sequence[str], only: RunId | None, *, takeovers: Takeovers, limit: int) -> list[RunRow]:
        self.flush()
        held = _HELD[takeovers]
        rows = self._due_of(only, held, limit) if only is not None else self._due_in(queues, held, limit)
        return [self._keep(row) for row in rows]

    def _due_of(self, only: RunId, held: str, limit: int) -> list[tuple[Any, ...]]:
        # "/" follows "." in the order of characters: the range holds every id that begins with "<only>.".
        sql = (
            f"SELECT {_COLUMNS} FROM runs WHERE (run_id = ? OR (run_id >= ? AND run_id < ?)) AND due <= ?{held}"
            " ORDER BY priority DESC, due, rid LIMIT ?"
        )
        return self._db.execute(sql, (only, f"{only}.", f"{only}/", self.now, limit)).fetchall()

    def _due_in(self, queues: Sequence[str], held: str, limit: int) -> list[tuple[Any, ...]]:
        """Walks the priorities from the top: within one, the index is in the order of due times."""
        found: list[tuple[int, int, int, tuple[Any, ...]]] = []
        sql = (
            f"SELECT {_COLUMNS} FROM runs WHERE queue = ? AND priority = ? AND due <= ?{held} ORDER BY due, rid LIMIT ?"
        )
        top = "SELECT max(priority) FROM runs WHERE queue = ? AND due IS NOT NULL"
        for queue in queues:
            left = limit
            priority = self._db.execute(top, (queue,)).fetchone()[0]
            while priority is not None and left > 0:
                rows = self._db.execute(sql, (queue, priority, self.now, left)).fetchall()
                left -= len(rows)
                found += [(-priority, row[9], row[0], row) for row in rows]
                priority = self._db.execute(f"{top} AND priority < ?", (queue, priority)).fetchone()[0]
        if len(queues) > 1:
            found.sort(key=lambda entry: entry[:3])
        return [row for _, _, _, row in found[:limit]]

    def next_due(self) -> int | None:
        """Asks once for each queue and priority in use: within one, the index is in the order of due times."""
        earliest: int | None = None
        at = self._db.execute(f"{_DUE_GROUP} ORDER BY queue, priority, due LIMIT 1").fetchone()
        while at is not None:
            if earliest is None or at[2] < earliest:
                earliest = at[2]
            sql = f"{_DUE_GROUP} AND (queue, priority) > (?, ?) ORDER BY queue, priority, due LIMIT 1"
            at = self._db.execute(sql, at[:2]).fetchone()
        return earliest

    def due_within(self, after: int, until: int) -> list[RunRow]:
        self.flush()
        sql = f"SELECT {_COLUMNS} FROM runs WHERE due > ? AND due <= ?"
        return [self._keep(row) for row in self._db.execute(sql, (after, until)).fetchall()]

    def held(self, nonce: str) -> list[RunRow]:
        self.flush()
        return [self._keep(r) for r in self._db.execute(f"SELECT {_COLUMNS} FROM runs WHERE nonce = ?", (nonce,))]

    def held_by(self, holder: str) -> list[RunRow]:
        self.flush()
        sql = f"SELECT {_COLUMNS} FROM runs WHERE nonce >= ? AND nonce < ?"
        return [self._keep(row) for row in self._db.execute(sql, (f"{holder}.", f"{holder}/")).fetchall()]

    def slots(self, tenant: str) -> int:
        self.flush()
        sql = "SELECT count(*) FROM runs WHERE tenant = ? AND slot = 1"
        count: int = self._db.execute(sql, (tenant,)).fetchone()[0]
        return count

    def ended_before(self, at_ms: int, limit: int) -> list[RunRow]:
        sql = f"SELECT {_COLUMNS} FROM runs WHERE ended < ? ORDER BY ended LIMIT ?"
        return [self._keep(row) for row in self._db.execute(sql, (at_ms, limit)).fetchall()]

    def page(self, wanted: RunFilter) -> list[RunRow]:
        wheres: list[tuple[str, Any]] = [
            ("status = ?", wanted.status),
            ("tenant = ?", wanted.tenant),
            ("starts.flow_id = ?", wanted.flow_id),
            ("business_key <> '' AND business_key = ?", wanted.business_key),
            ("runs.rid IN (SELECT rid FROM tags WHERE tag = ?)", wanted.tag),
            ("runs.rid > ?" if wanted.oldest_first else "runs.rid < ?", wanted.beyond),
        ]
        used = [(sql, value) for sql, value in wheres if value not in ("", None)]
        columns = ", ".join(f"runs.{f}" for f in _FIELDS)
        where = "".join(f" AND {sql}" for sql, _ in used)
        order = "ASC" if wanted.oldest_first else "DESC"
        sql = f"SELECT {columns} FROM runs JOIN starts USING (rid) WHERE 1{where} ORDER BY runs.rid {order} LIMIT ?"
        return [RunRow(*row) for row in self._db.execute(sql, (*(v for _, v in used), wanted.limit))]

    def live(self) -> list[RunRow]:
        self.flush()
        sql = f"SELECT {_COLUMNS} FROM runs WHERE status NOT IN ({', '.join('?' * len(TERMINAL))})"
        return [self._keep(row) for row in self._db.execute(sql, tuple(TERMINAL)).fetchall()]

    def flush(self) -> None:
        """Write the headers that changed."""
        loaded = self._loaded
        light: list[tuple[Any, ...]] = []
        whole: list[tuple[Any, ...]] = []
        for rid, (run, before) in loaded.items():
            values = _values(run)
            if values == before:
                continue
            if values[:_LIGHT_FROM] == before[:_LIGHT_FROM]:
                light.append((*values[_LIGHT_FROM:], rid))
            else:
                whole.append((*values[7:], rid))
                self.stirred |= run.due is not None and (run.nonce is None or run.due <= self.now)
            loaded[rid] = (run, values)
        if light:
            self._db.executemany(_SAVE_LIGHT, light)
        if whole:
            self._db.executemany(_SAVE, whole)

    def remember(self) -> None:
        """After the commit: keep the headers of held runs, whose next settle will want them."""
        known = self._known
        if len(known) > KNOWN_MAX:
            known.clear()
        for entry in self._loaded.values():
            run = entry[0]
            if run.nonce is not None:
                known[run.run_id] = entry
            else:
                known.pop(run.run_id, None)

    def _keep(self, row: tuple[Any, ...]) -> RunRow:
        known = self._loaded.get(row[0])
        if known is not None:
            return known[0]
        run = RunRow(*row)
        self._loaded[run.rid], self._ids[run.run_id] = (run, row), run
        return run
