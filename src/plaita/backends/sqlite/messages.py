"""Producers' messages and dead letters in SQLite."""

from __future__ import annotations

import sqlite3

from plaita.backends.sqlite.runs import SqliteRuns
from plaita.ports.inbox import DeadLetter, Message

_DEAD = (
    "SELECT number, message_id, body, at, reason, detail, died FROM dead_letters WHERE number > ?"
    " ORDER BY number LIMIT ?"
)
_BURY = (
    "INSERT OR REPLACE INTO dead_letters (message_id, body, at, reason, detail, died) VALUES (?, ?, ?, ?, ?, ?)"
)  # fmt: skip


class SqliteMessages:
    """The inbox is a table whose rows go when they are accepted."""

    def __init__(self, db: sqlite3.Connection, runs: SqliteRuns) -> None:
        self._db, self._runs = db, runs

    def holds(self, message_id: str) -> bool:
        row = self._db.execute("SELECT 1 FROM inbox WHERE message_id = ?", (message_id,)).fetchone()
        return row is not None

    def add(self, message: Message) -> None:
        sql = "INSERT INTO inbox (message_id, body, at) VALUES (?, ?, ?)"
        self._db.execute(sql, (message.message_id, message.body, message.at_ms))
        self._runs.stirred = True

    def first(self, n: int) -> list[Message]:
        rows = self._db.execute("SELECT message_id, body, at FROM inbox ORDER BY number LIMIT ?", (n,)).fetchall()
        return [Message(*row) for row in rows]

    def remove(self, message: Message) -> None:
        self._db.execute("DELETE FROM inbox WHERE message_id = ?", (message.message_id,))

    def count(self) -> int:
        count: int = self._db.execute("SELECT count(*) FROM inbox").fetchone()[0]
        return count

    def bury(self, letter: DeadLetter) -> None:
        message = letter.message
        values = (message.message_id, message.body, message.at_ms, letter.reason, letter.detail, letter.died_ms)
        self._db.execute(_BURY, values)

    def dead(self, limit: int, after: str) -> list[tuple[str, DeadLetter]]:
        rows = self._db.execute(_DEAD, (int(after or 0), limit)).fetchall()
        return [
            (str(number), DeadLetter(Message(message_id, body, at_ms), reason, detail, died_ms))
            for number, message_id, body, at_ms, reason, detail, died_ms in rows
        ]

    def forget_dead(self, older_than_ms: int) -> None:
        self._db.execute("DELETE FROM dead_letters WHERE died < ?", (older_than_ms,))
