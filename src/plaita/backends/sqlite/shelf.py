"""Tasks, definitions and processes in SQLite."""

from __future__ import annotations

import sqlite3
from typing import Any

from plaita.backends.limits import SPARED_MS
from plaita.backends.process_codec import facts_bytes, facts_of
from plaita.backends.sqlite.codec import CLOSURE_AT, from_list, to_list
from plaita.backends.task_codec import spec_bytes, spec_of, votes_bytes, votes_of
from plaita.ports.flows import FlowVersion
from plaita.ports.processes import Process
from plaita.ports.tasks import Task

_TASK = "task_id, run_id, wait_id, flow_id, node_id, spec, status, version, created, deadline, votes"
_ADD_TASK = f"INSERT INTO tasks ({_TASK}) VALUES ({', '.join('?' * 11)})"
_INBOX = f"SELECT number, {_TASK} FROM tasks WHERE status = 'open' AND number > ? ORDER BY number LIMIT ?"
_INBOX_OF = (
    f"SELECT number, {_TASK} FROM tasks WHERE status = 'open' AND number > ?"
    " AND number IN (SELECT number FROM approvers WHERE actor IN (?, '')) ORDER BY number LIMIT ?"
)
_FLOW = "SELECT flow_id, version, closure, published FROM flows"
_LATE = SPARED_MS // 2
"""A use is noted when the last one that was is so old: starts of one flow, one after the other, write it once."""
_PUT_USE = f"INSERT INTO uses VALUES (?, ?) ON CONFLICT DO UPDATE SET at = excluded.at WHERE at < excluded.at - {_LATE}"
_USE = f"UPDATE uses SET at = ?2 WHERE closure = ?1 AND at < ?2 - {_LATE}"
SPARE = (
    "SELECT closure FROM uses WHERE at < ? AND closure NOT IN (SELECT closure FROM flows)"
    " AND NOT EXISTS (SELECT 1 FROM starts WHERE starts.closure = uses.closure) AND closure NOT IN"
    f" (SELECT json_extract(CAST(submission AS TEXT), '{CLOSURE_AT}') FROM outbox WHERE submission IS NOT NULL) LIMIT ?"
)
"""Definitions that were used last before a time and that nobody has, so many at most."""


class SqliteTasks:
    """Human tasks; ``approvers`` indexes who may vote, the empty name stands for everybody."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def load(self, task_id: str) -> Task | None:
        row = self._db.execute(f"SELECT {_TASK} FROM tasks WHERE task_id = ?", (task_id,)).fetchone()
        return None if row is None else _task(row)

    def add(self, task: Task) -> None:
        identity = (task.task_id, task.run_id, task.wait_id, task.flow_id, task.node_id, spec_bytes(task.spec))
        state = (task.status, task.version, task.created_ms, task.deadline_ms, votes_bytes(task.votes))
        number = self._db.execute(_ADD_TASK, (*identity, *state)).lastrowid
        names = set(task.spec.approvers) or {""}
        self._db.executemany("INSERT INTO approvers VALUES (?, ?)", [(name, number) for name in names])

    def save(self, task: Task) -> None:
        sql = "UPDATE tasks SET status = ?, version = ?, votes = ? WHERE task_id = ?"
        self._db.execute(sql, (task.status, task.version, votes_bytes(task.votes), task.task_id))

    def inbox(self, actor: str, limit: int, after: str) -> list[tuple[str, Task]]:
        above = int(after or 0)
        values: tuple[Any, ...] = (above, actor, limit) if actor else (above, limit)
        rows = self._db.execute(_INBOX_OF if actor else _INBOX, values).fetchall()
        return [(str(row[0]), _task(row[1:])) for row in rows]


class SqliteShelf:
    """Definitions and processes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def put_closure(self, closure: str, document: bytes, at_ms: int) -> None:
        self._db.execute("INSERT OR IGNORE INTO closures VALUES (?, ?)", (closure, document))
        self._db.execute(_PUT_USE, (closure, at_ms))

    def use_closure(self, closure: str, at_ms: int) -> None:
        self._db.execute(_USE, (closure, at_ms))

    def forget_closures(self, older_than_ms: int, limit: int) -> int:
        spare = self._db.execute(SPARE, (older_than_ms, limit)).fetchall()
        for table in ("closures", "uses"):
            self._db.executemany(f"DELETE FROM {table} WHERE closure = ?", spare)
        return len(spare)

    def closure(self, closure: str) -> bytes | None:
        row = self._db.execute("SELECT document FROM closures WHERE closure = ?", (closure,)).fetchone()
        return None if row is None else row[0]

    def put_flow(self, version: FlowVersion) -> None:
        sql = "INSERT OR REPLACE INTO flows (flow_id, version, closure, published) VALUES (?, ?, ?, ?)"
        self._db.execute(sql, (version.flow_id, version.version, version.closure, version.published_ms))

    def flow(self, flow_id: str, version: str) -> FlowVersion | None:
        only, values = (" AND version = ?", (flow_id, version)) if version else ("", (flow_id,))
        sql = f"{_FLOW} WHERE flow_id = ?{only} ORDER BY number DESC LIMIT 1"
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else FlowVersion(*row)

    def versions(self, flow_id: str) -> list[FlowVersion]:
        rows = self._db.execute(f"{_FLOW} WHERE flow_id = ? ORDER BY number DESC", (flow_id,)).fetchall()
        return [FlowVersion(*row) for row in rows]

    def flows(self) -> list[FlowVersion]:
        sql = f"{_FLOW} WHERE number IN (SELECT max(number) FROM flows GROUP BY flow_id) ORDER BY flow_id"
        return [FlowVersion(*row) for row in self._db.execute(sql).fetchall()]

    def add_process(self, process: Process) -> int:
        columns = "holder, pid, queues, only_run, imports, started, facts"
        sql = f"INSERT INTO processes ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)"
        lists = (to_list(process.queues), process.only, to_list(process.imports))
        facts = facts_bytes(process.facts).decode()
        number = self._db.execute(sql, (process.holder, process.pid, *lists, process.started_ms, facts)).lastrowid
        assert number is not None
        return number

    def renew_process(self, process: Process) -> bool:
        sql = "UPDATE processes SET facts = ? WHERE holder = ?"
        return self._db.execute(sql, (facts_bytes(process.facts).decode(), process.holder)).rowcount > 0

    def drop_process(self, holder: str) -> None:
        self._db.execute("DELETE FROM processes WHERE holder = ?", (holder,))

    def processes(self) -> list[tuple[int, Process]]:
        sql = "SELECT number, holder, pid, queues, only_run, imports, started, facts FROM processes ORDER BY number"
        return [
            (number, Process(holder, pid, from_list(queues), only, from_list(imports), started, facts_of(facts)))
            for number, holder, pid, queues, only, imports, started, facts in self._db.execute(sql).fetchall()
        ]


def _task(row: tuple[Any, ...]) -> Task:
    task_id, run_id, wait_id, flow_id, node_id, spec, status, version, created, deadline, votes = row
    identity = (task_id, run_id, wait_id, flow_id, node_id)
    return Task(*identity, spec_of(spec), status, version, created, deadline, votes_of(votes))
