"""What hangs on one run alone: start, outcome, frames and history, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from plaita.backends.rows import OutcomeRow, RunRow, StartRow
from plaita.backends.sqlite.codec import start_of
from plaita.ports.queries import Entry
from plaita.ports.values import Parent

_PUT_FRAME = "INSERT INTO frames (rid, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
_DROP_FRAME = "DELETE FROM frames WHERE rid = ? AND key = ?"
_LOG = "INSERT INTO history (rid, seq, count, at, data) VALUES (?, ?, ?, ?, ?)"
_HISTORY = "SELECT seq, count, at, data FROM history WHERE rid = ? AND seq > ? ORDER BY seq LIMIT ?"
_OUTCOME = "SELECT output, error, failures, wakeups, lost_worker FROM outcomes WHERE rid = ?"


class SqliteRecord:
    """Frames and history are written by ``flush``, all runs of a transaction at once; ``now`` dates the history.

    The entries of one run and transaction are one row: ``seq`` is the number of the last, ``data`` has a line for each.
    """

    def __init__(self, db: sqlite3.Connection, now: int) -> None:
        self._db, self._now = db, now
        self._frames: dict[tuple[int, str], bytes | None] = {}
        self._entries: dict[int, tuple[RunRow, list[bytes]]] = {}

    def flush(self) -> None:
        """Write what was said so far."""
        if self._frames:
            put = [(rid, key, value) for (rid, key), value in self._frames.items() if value is not None]
            self._db.executemany(_PUT_FRAME, put)
            if len(put) < len(self._frames):
                self._db.executemany(_DROP_FRAME, [place for place, value in self._frames.items() if value is None])
            self._frames.clear()
        if self._entries:
            now = self._now
            rows = [(rid, run.entries, len(said), now, b"\n".join(said)) for rid, (run, said) in self._entries.items()]
            self._db.executemany(_LOG, rows)
            self._entries.clear()

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
        self.flush()
        return dict(self._db.execute("SELECT key, value FROM frames WHERE rid = ?", (run.rid,)).fetchall())

    def put_frames(self, run: RunRow, delta: Mapping[str, bytes | None]) -> None:
        rid, frames = run.rid, self._frames
        for key, value in delta.items():
            frames[rid, key] = value

    def drop_frames(self, run: RunRow) -> None:
        self.flush()
        self._db.execute("DELETE FROM frames WHERE rid = ?", (run.rid,))

    def log(self, run: RunRow, entries: Iterable[bytes]) -> None:
        said = self._entries.setdefault(run.rid, (run, []))[1]
        for data in entries:
            run.entries += 1
            # A line break in JSON is a space between two tokens; inside a text it is escaped.
            said.append(data.replace(b"\n", b" "))

    def history(self, run: RunRow, after: int, limit: int) -> list[Entry]:
        self.flush()
        found: list[Entry] = []
        for seq, count, at, data in self._db.execute(_HISTORY, (run.rid, after, limit)):
            numbered = enumerate(data.split(b"\n"), seq - count + 1)
            found += [Entry(number, at, entry) for number, entry in numbered if number > after]
        return found[:limit]
