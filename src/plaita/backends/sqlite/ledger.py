"""Event log, outbox, quota queue, pulse and graves in SQLite."""

from __future__ import annotations

import sqlite3
from typing import Any

from plaita.backends.rows import EventRow, Grave, OutRow, Pulse, RunRow
from plaita.backends.sqlite.codec import submission_bytes, submission_of
from plaita.backends.sqlite.runs import SqliteRuns
from plaita.ports.values import RunId, Status

_EVENT = "SELECT number, event_id, event_type, key, data, at, matched, woken FROM events WHERE"
_PUT_EVENT = "INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_UNCONSUMED = " AND number NOT IN (SELECT event FROM consumed WHERE rid = ?)"
_FORGET = (
    "DELETE FROM events WHERE at < ? AND number <= ? AND number NOT IN (SELECT event FROM outbox WHERE kind = 'event')"
)
_PUSH = (
    "INSERT INTO outbox (kind, run_id, incarnation, wait_id, event, cursor, data, submission)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


class SqliteEvents:
    """The number sequence and the event log."""

    def __init__(self, db: sqlite3.Connection, runs: SqliteRuns) -> None:
        self._db, self._runs = db, runs

    def current(self) -> int:
        number: int = self._db.execute("SELECT sequence FROM store").fetchone()[0]
        return number

    def next(self) -> int:
        number: int = self._db.execute("UPDATE store SET sequence = sequence + 1 RETURNING sequence").fetchone()[0]
        return number

    def find(self, event_id: str) -> EventRow | None:
        row = self._db.execute(f"{_EVENT} event_id = ?", (event_id,)).fetchone()
        return None if row is None else EventRow(*row)

    def at(self, number: int) -> EventRow:
        return EventRow(*self._db.execute(f"{_EVENT} number = ?", (number,)).fetchone())

    def put(self, event: EventRow) -> None:
        values = (event.event_type, event.key, event.data, event.at_ms, event.matched, event.woken)
        self._db.execute(_PUT_EVENT, (event.number, event.event_id, *values))

    def lowest(self, event_type: str, key: str | None, above: int, unconsumed_by: RunRow | None) -> int | None:
        sql = "SELECT number FROM events WHERE event_type = ?"
        values: list[Any] = [event_type]
        if key is not None:
            sql += " AND key = ?"
            values.append(key)
        sql += " AND number > ?"
        values.append(above)
        if unconsumed_by is not None:
            sql += _UNCONSUMED
            values.append(unconsumed_by.rid)
        row = self._db.execute(f"{sql} ORDER BY number LIMIT 1", values).fetchone()
        return None if row is None else row[0]

    def forget(self, older_than_ms: int) -> None:
        oldest = min((run.born for run in self._runs.live()), default=self.current())
        self._db.execute(_FORGET, (older_than_ms, oldest))


class SqliteLedger:
    """Outbox, quota queue, pulse, graves."""

    def __init__(self, db: sqlite3.Connection, runs: SqliteRuns) -> None:
        self._db, self._runs = db, runs

    def push(self, entry: OutRow) -> None:
        start = submission_bytes(entry.submission) if entry.submission is not None else None
        values = (entry.kind, entry.run_id, entry.incarnation, entry.wait_id, entry.event, entry.cursor)
        self._db.execute(_PUSH, (*values, entry.data, start))
        self._runs.stirred = True

    def first(self) -> OutRow | None:
        row = self._db.execute("SELECT * FROM outbox ORDER BY number LIMIT 1").fetchone()
        return None if row is None else _out(row)

    def entries(self) -> list[OutRow]:
        return [_out(row) for row in self._db.execute("SELECT * FROM outbox ORDER BY number").fetchall()]

    def event_pending(self, number: int) -> bool:
        sql = "SELECT 1 FROM outbox WHERE kind = 'event' AND event = ?"
        return self._db.execute(sql, (number,)).fetchone() is not None

    def move(self, number: int, cursor: int) -> None:
        self._db.execute("UPDATE outbox SET cursor = ? WHERE number = ?", (cursor, number))

    def pop(self, number: int) -> None:
        self._db.execute("DELETE FROM outbox WHERE number = ?", (number,))

    def enqueue(self, run: RunRow, kind: int) -> None:
        number = self._db.execute("UPDATE store SET parked = parked + 1 RETURNING parked").fetchone()[0]
        self._db.execute("INSERT INTO quota VALUES (?, ?, ?, ?)", (run.rid, run.tenant, kind, number))

    def dequeue(self, run: RunRow) -> None:
        self._db.execute("DELETE FROM quota WHERE rid = ?", (run.rid,))

    def head(self, tenant: str, kind: int | None) -> RunRow | None:
        only = "" if kind is None else " AND kind = ?"
        values: tuple[Any, ...] = (tenant,) if kind is None else (tenant, kind)
        sql = f"SELECT rid FROM quota WHERE tenant = ?{only} ORDER BY kind, number LIMIT 1"
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else self._runs.at(row[0])

    def parked(self) -> list[tuple[str, int]]:
        return self._db.execute("SELECT tenant, rid FROM quota ORDER BY kind, number").fetchall()

    def promotions(self, tenant: str) -> int:
        sql = "INSERT INTO promotions VALUES (?, 1) ON CONFLICT DO UPDATE SET count = count + 1 RETURNING count"
        count: int = self._db.execute(sql, (tenant,)).fetchone()[0]
        return count

    def pulse(self) -> Pulse:
        return Pulse(*self._db.execute("SELECT contact, grace FROM store").fetchone())

    def save_pulse(self, pulse: Pulse) -> None:
        self._db.execute("UPDATE store SET contact = ?, grace = ?", (pulse.contact_ms, pulse.grace_until_ms))

    def grave(self, run_id: RunId) -> Grave | None:
        row = self._db.execute("SELECT generation, buried FROM graves WHERE run_id = ?", (run_id,)).fetchone()
        return None if row is None else Grave(*row)

    def bury(self, run_id: RunId, grave: Grave) -> None:
        self._db.execute("INSERT OR REPLACE INTO graves VALUES (?, ?, ?)", (run_id, grave.generation, grave.buried_ms))

    def forget_graves(self, older_than_ms: int) -> None:
        self._db.execute("DELETE FROM graves WHERE buried < ?", (older_than_ms,))

    def by_status(self) -> dict[Status, int]:
        return dict(self._db.execute("SELECT status, count(*) FROM runs GROUP BY status").fetchall())

    def unheld(self) -> tuple[int, int | None]:
        sql = "SELECT count(*), min(due) FROM runs WHERE due IS NOT NULL AND due <= ? AND nonce IS NULL"
        count, since = self._db.execute(sql, (self._runs.now,)).fetchone()
        return count, since


def _out(row: tuple[Any, ...]) -> OutRow:
    values = (*row[:8], None if row[8] is None else submission_of(row[8]))
    return OutRow(*values)
