"""Waits, mailbox and consumed events in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from plaita.backends.rows import EventRow, RunRow, WaitRow
from plaita.backends.sqlite.runs import SqliteRuns
from plaita.ports.values import By, Mail, WaitId

_COLUMNS = (
    "wait_id, kind, node_id, address, event_type, key, by_filter, reuse, arm, low, since, deadline, task_id, child,"
    " state, by_kind, by_event, by_digest, by_actor, cand"
)
_OF = f"SELECT {_COLUMNS} FROM waits WHERE rid = ? ORDER BY arm"
_ADD = f"INSERT INTO waits (rid, {_COLUMNS}) VALUES ({', '.join('?' * 21)})"
_SAVE = (
    "UPDATE waits SET low = ?, child = ?, state = ?, by_kind = ?, by_event = ?, by_digest = ?, by_actor = ?, cand = ?"
    " WHERE rid = ? AND arm = ?"
)
_LISTENING = (
    "SELECT rid, wait_id, arm FROM waits WHERE state = 'open' AND kind = 'event' AND event_type = ?"
    " AND (key IS NULL OR key = ?) AND arm > ? AND arm < ? ORDER BY arm LIMIT ?"
)
_MAILBOX = (
    "SELECT number, kind, wait_id, CASE event WHEN 0 THEN data"
    " ELSE (SELECT e.data FROM events e WHERE e.number = event) END, event FROM mailbox WHERE rid = ? ORDER BY number"
)
_POST = "INSERT INTO mailbox (rid, number, kind, wait_id, event, data) VALUES (?, ?, ?, ?, ?, ?)"


class SqliteWaits:
    """Waits of one transaction. An event's bytes are in the event log only; its mailbox entries point there."""

    def __init__(self, db: sqlite3.Connection, runs: SqliteRuns) -> None:
        self._db, self._runs = db, runs
        self._loaded: dict[int, dict[WaitId, WaitRow]] = {}

    def of(self, run: RunRow) -> dict[WaitId, WaitRow]:
        waits = self._loaded.get(run.rid)
        if waits is None:
            rows = self._db.execute(_OF, (run.rid,)).fetchall() if run.armed else ()
            waits = self._loaded[run.rid] = {row[0]: _wait(row) for row in rows}
        return waits

    def add(self, run: RunRow, wait: WaitRow) -> None:
        self.of(run)[wait.wait_id] = wait
        self._db.execute(
            _ADD,
            (
                run.rid, wait.wait_id, wait.kind, wait.node_id, wait.address, wait.event_type, wait.key, wait.by_filter,
                wait.reuse, wait.arm, wait.low, wait.since, wait.deadline, wait.task_id, wait.child, wait.state,
                *_by(wait.by), wait.cand,
            ),
        )  # fmt: skip

    def save(self, run: RunRow, wait: WaitRow) -> None:
        self._db.execute(
            _SAVE, (wait.low, wait.child, wait.state, *_by(wait.by), wait.cand, run.rid, wait.arm)
        )  # fmt: skip

    def listening(self, event: EventRow, after: int, limit: int) -> list[tuple[RunRow, WaitId, int]]:
        found = self._db.execute(_LISTENING, (event.event_type, event.key, after, event.number, limit)).fetchall()
        return [(self._runs.at(rid), wait_id, arm) for rid, wait_id, arm in found]

    def mailbox(self, run: RunRow) -> tuple[Mail, ...]:
        rows = self._db.execute(_MAILBOX, (run.rid,)).fetchall()
        return tuple(Mail(*row) for row in rows)

    def post(self, run: RunRow, mail: Mail) -> None:
        data = None if mail.event else mail.data
        self._db.execute(_POST, (run.rid, mail.number, mail.kind, mail.wait_id, mail.event, data))

    def unpost(self, run: RunRow, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._db.execute("DELETE FROM mailbox WHERE rid = ? AND number = ?", (run.rid, number))

    def consume(self, run: RunRow, number: int) -> None:
        self._db.execute("INSERT OR IGNORE INTO consumed VALUES (?, ?)", (run.rid, number))

    def release(self, run: RunRow, number: int) -> None:
        self._db.execute("DELETE FROM consumed WHERE rid = ? AND event = ?", (run.rid, number))

    def forget_consumed(self, run: RunRow) -> None:
        if run.armed:
            self._db.execute("DELETE FROM consumed WHERE rid = ?", (run.rid,))


def _wait(row: tuple[Any, ...]) -> WaitRow:
    by = None if row[15] is None else By(*row[15:19])
    values = (*row[:15], by, row[19])
    return WaitRow(*values)


def _by(by: By | None) -> tuple[Any, ...]:
    return (None, None, None, None) if by is None else (by.kind, by.event, by.digest, by.actor)
