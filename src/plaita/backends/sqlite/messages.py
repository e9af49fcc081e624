"""Producers' messages and dead letters in SQLite."""

from __future__ import annotations

import sqlite3
from typing import Any

from plaita.backends.sqlite.runs import SqliteRuns
from plaita.base.ids import NUMBER
from plaita.ports.inbox import DeadLetter, Deed, Message

_LETTER = "SELECT number, message_id, body, at, reason, detail, died, replays FROM letters"
_DEAD = f"{_LETTER} WHERE number > ? ORDER BY number LIMIT ?"
_BURY = "INSERT INTO letters (message_id, body, at, reason, detail, died, replays) VALUES (?, ?, ?, ?, ?, ?, ?)"
_DEED = "letter, at, action, actor, result, forced, message_id"


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

    def count_dead(self) -> int:
        count: int = self._db.execute("SELECT count(*) FROM letters").fetchone()[0]
        return count

    def bury(self, letter: DeadLetter) -> None:
        sent = letter.message
        values = (sent.message_id, sent.body, sent.at_ms, letter.reason, letter.detail, letter.died_ms, letter.replays)
        self._db.execute(_BURY, values)

    def dead(self, limit: int, after: str) -> list[DeadLetter]:
        return [_letter(row) for row in self._db.execute(_DEAD, (int(after or 0), limit))]

    def dead_letter(self, letter_id: str) -> DeadLetter | None:
        if not NUMBER.fullmatch(letter_id):
            return None
        row = self._db.execute(f"{_LETTER} WHERE number = ?", (int(letter_id),)).fetchone()
        return None if row is None else _letter(row)

    def save_dead(self, letter: DeadLetter) -> None:
        sql = "UPDATE letters SET replays = ? WHERE number = ?"
        self._db.execute(sql, (letter.replays, int(letter.letter_id)))

    def drop_dead(self, letter_id: str) -> None:
        self._db.execute("DELETE FROM letters WHERE number = ?", (int(letter_id),))

    def record(self, deed: Deed) -> None:
        values = (
            int(deed.letter_id), deed.at_ms, deed.action, deed.actor, deed.result, deed.force, deed.message_id,
        )  # fmt: skip
        self._db.execute(f"INSERT INTO deeds ({_DEED}) VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def deeds(self, letter_id: str) -> list[Deed]:
        rows = self._db.execute(f"SELECT {_DEED} FROM deeds WHERE letter = ? ORDER BY number", (int(letter_id),))
        return [
            Deed(str(letter), at_ms, action, actor, result, bool(forced), message_id)
            for letter, at_ms, action, actor, result, forced, message_id in rows
        ]

    def forget_dead(self, older_than_ms: int) -> None:
        self._db.execute("DELETE FROM letters WHERE died < ?", (older_than_ms,))


def _letter(row: tuple[Any, ...]) -> DeadLetter:
    number, message_id, body, at_ms, reason, detail, died_ms, replays = row
    return DeadLetter(Message(message_id, body, at_ms), reason, detail, died_ms, str(number), replays)
