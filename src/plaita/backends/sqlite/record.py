"""What hangs on one run alone: start, outcome, frames and history, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from plaita.backends.rows import OutcomeRow, RunRow, StartRow
from plaita.backends.sqlite.codec import start_of
from plaita.ports.queries import Entry
from plaita.ports.values import Parent

_PUT_FRAME = "INSERT INTO frames (rid, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
_LOG = "INSERT INTO history (rid, seq, at, data) VALUES (?, ?, ?, ?)"
_OUTCOME = "SELECT output, error, failures, wakeups, lost_worker FROM outcomes WHERE rid = ?"


class SqliteRecord:
    """Written when it is said; ``now`` dates the history."""

    def __init__(self, db: sqlite3.Connection, now: int) -> None:
        self._db, self._now = db, now

    def start(self, run: RunRow) -> StartRow:
        return start_of(run, self._db.execute("SELECT * FROM starts WHERE rid = ?", (run.rid,)).fetchone())

    def parent(self, run: RunRow) -> Parent | None:
        columns = "parent_run, parent_incarnation, parent_wait"
        row = self._db.execute(f"SELECT {columns} FROM starts WHERE rid = ?", (run.rid,)).fetchone()
        return None if row[0] is None else Parent(*row)

    def outcome(self, run: RunRow) -> OutcomeRow:
        row = self._db.execute(_OUTCOME, (run.rid,)).fetchone()
        return OutcomeRow() if row is None else OutcomeRow(*row)

    def save_outcome(self, run: RunRow, outcome: OutcomeRow) -> None:
        values = (run.rid, outcome.output, outcome.error, outcome.failures, outcome.wakeups, outcome.lost_worker)
        self._db.execute("INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?, ?)", values)

    def frames(self, run: RunRow) -> dict[str, bytes]:
        return dict(self._db.execute("SELECT key, value FROM frames WHERE rid = ?", (run.rid,)).fetchall())

    def put_frames(self, run: RunRow, delta: Mapping[str, bytes | None]) -> None:
        rid, execute = run.rid, self._db.execute
        for key, value in delta.items():
            if value is None:
                execute("DELETE FROM frames WHERE rid = ? AND key = ?", (rid, key))
            else:
                execute(_PUT_FRAME, (rid, key, value))

    def drop_frames(self, run: RunRow) -> None:
        self._db.execute("DELETE FROM frames WHERE rid = ?", (run.rid,))

    def log(self, run: RunRow, entries: Iterable[bytes]) -> None:
        for data in entries:
            run.entries += 1
            self._db.execute(_LOG, (run.rid, run.entries, self._now, data))

    def history(self, run: RunRow, after: int, limit: int) -> list[Entry]:
        sql = "SELECT seq, at, data FROM history WHERE rid = ? AND seq > ? ORDER BY seq LIMIT ?"
        return [Entry(*row) for row in self._db.execute(sql, (run.rid, after, limit))]
