"""Group commit: the verbs of one tick of the event loop are one transaction."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from plaita.backends.limits import Limits
from plaita.backends.rows import Rows
from plaita.backends.sqlite.connection import OPEN_WAIT_MS, Synchronous, is_busy, open_file, unavailable
from plaita.backends.sqlite.ledger import SqliteEvents, SqliteLedger
from plaita.backends.sqlite.messages import SqliteMessages
from plaita.backends.sqlite.record import SqliteRecord
from plaita.backends.sqlite.runs import Headers, SqliteRuns
from plaita.backends.sqlite.shelf import SqliteShelf, SqliteTasks
from plaita.backends.sqlite.waits import SqliteWaits
from plaita.base.clock import Clock, roll
from plaita.base.errors import Unavailable

T = TypeVar("T")
Verb = Callable[[Rows], Any]

BATCH_MAX = 128
RETRY_MS = (0.2, 5.0)
"""Between two tries for the write lock: random, so that no process starves another."""
READ_WAIT_MS = 1_000


class SqliteRows:
    """One transaction."""

    def __init__(self, db: sqlite3.Connection, limits: Limits, now: int, known: Headers | None = None) -> None:
        self.now, self.limits = now, limits
        self.record = SqliteRecord(db, now)
        self.runs = SqliteRuns(db, now, self.record, known)
        self.waits = SqliteWaits(db, self.runs)
        self.events = SqliteEvents(db, self.runs)
        self.ledger = SqliteLedger(db, self.runs)
        self.messages = SqliteMessages(db, self.runs)
        self.tasks = SqliteTasks(db)
        self.shelf = SqliteShelf(db)


class SqliteGate:
    """One connection, used on one event loop. Commits run in the loop: handing them to a thread costs more.

    A verb that raises keeps nothing and harms no neighbour: the transaction is taken back and its verbs run one by one.
    """

    def __init__(self, path: Path, clock: Clock, limits: Limits, synchronous: Synchronous) -> None:
        self.limits = limits
        self._path, self._clock, self._synchronous = path, clock, synchronous
        self._db = open_file(path, synchronous)
        self._pid = os.getpid()
        self._queue: deque[tuple[Verb, asyncio.Future[Any]]] = deque()
        self._scheduled = False
        self._known: Headers = {}
        self._known_version = -1
        self._blocked_since: float | None = None
        self.stirred = asyncio.Event()

    async def write(self, verb: Callable[[Rows], T]) -> T:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._queue.append((verb, answer))
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._commit_batch, loop)
        return await answer

    def read(self, question: Callable[[Rows], T]) -> T:
        self._check_process()
        return self._patiently(lambda: self._read(question))

    def write_now(self, verb: Callable[[Rows], T]) -> T:
        """Run one verb outside of any batch; used before there is an event loop."""
        self._db.execute(f"PRAGMA busy_timeout = {OPEN_WAIT_MS}")
        try:
            self._begin()
            answer: T = self._transact([verb])[0]
        except sqlite3.Error as e:
            raise unavailable(e, self._path) from e
        finally:
            self._db.execute("PRAGMA busy_timeout = 0")
        return answer

    def durability(self) -> str:
        return "local" if self._synchronous == "FULL" else "memory"

    def version(self) -> int:
        """A number that changes when another connection wrote."""
        return self._patiently(self._data_version)

    def close(self) -> None:
        """Fail what still waits and give the connection back."""
        while self._queue:
            self._answer(self._queue.popleft()[1], Unavailable(f"the store {self._path} was closed"))
        self._db.close()

    def _commit_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled = False
        queue = self._queue
        batch = [queue.popleft() for _ in range(min(len(queue), BATCH_MAX))]
        batch = [entry for entry in batch if not entry[1].done()]
        left = self._try_batch(batch, loop) if batch else []
        queue.extendleft(reversed(left))
        if queue and not self._scheduled:
            self._scheduled = True
            if left:
                low, high = RETRY_MS
                loop.call_later((low + (high - low) * roll()) / 1000, self._commit_batch, loop)
            else:
                loop.call_soon(self._commit_batch, loop)

    def _try_batch(
        self, batch: list[tuple[Verb, asyncio.Future[Any]]], loop: asyncio.AbstractEventLoop
    ) -> list[tuple[Verb, asyncio.Future[Any]]]:  # fmt: skip
        """Answer a batch; what is given back could not begin because another process is writing."""
        try:
            self._check_process()
            self._begin()
        except (sqlite3.Error, Unavailable) as e:
            if isinstance(e, sqlite3.Error) and is_busy(e) and self._may_wait(loop):
                return batch
            self._blocked_since = None
            failure = e if isinstance(e, Unavailable) else unavailable(e, self._path)
            for _, answer in batch:
                self._answer(answer, failure)
            return []
        self._blocked_since = None
        try:
            answers = self._transact([verb for verb, _ in batch])
        except Exception as e:  # noqa: BLE001 - a verb's error is its caller's, whatever it is
            if len(batch) == 1:
                self._answer(batch[0][1], unavailable(e, self._path) if isinstance(e, sqlite3.DatabaseError) else e)
                return []
            return [left for entry in batch for left in self._try_batch([entry], loop)]
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)
        return []

    def _begin(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def _transact(self, verbs: Sequence[Verb]) -> list[Any]:
        version = self._data_version()
        if version != self._known_version:
            self._known_version = version
            self._known.clear()
        rows = SqliteRows(self._db, self.limits, self._clock.now_ms(), self._known)
        try:
            answers = [verb(rows) for verb in verbs]
            rows.record.flush()
            rows.runs.flush()
            self._db.execute("COMMIT")
        except BaseException:
            self._known.clear()
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        rows.runs.remember()
        if rows.runs.stirred:
            self.stirred.set()
        return answers

    def _patiently(self, look: Callable[[], T]) -> T:
        """Look into the file. Only the recovery after a crash and the last process that leaves keep others out."""
        try:
            return look()
        except sqlite3.DatabaseError as e:
            if not is_busy(e):
                raise unavailable(e, self._path) from e
        self._db.execute(f"PRAGMA busy_timeout = {READ_WAIT_MS}")
        try:
            return look()
        except sqlite3.DatabaseError as e:
            raise unavailable(e, self._path) from e
        finally:
            self._db.execute("PRAGMA busy_timeout = 0")

    def _data_version(self) -> int:
        number: int = self._db.execute("PRAGMA data_version").fetchone()[0]
        return number

    def _read(self, question: Callable[[Rows], T]) -> T:
        self._db.execute("BEGIN")
        try:
            return question(SqliteRows(self._db, self.limits, self._clock.now_ms()))
        finally:
            if self._db.in_transaction:
                self._db.execute("COMMIT")

    def _may_wait(self, loop: asyncio.AbstractEventLoop) -> bool:
        if self._blocked_since is None:
            self._blocked_since = loop.time()
        return (loop.time() - self._blocked_since) * 1000 < self.limits.lock_wait_ms

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise Unavailable(
                f"the store {self._path} was opened before this process was forked", "open it again in the new process"
            )

    @staticmethod
    def _answer(future: asyncio.Future[Any], error: Exception) -> None:
        if not future.done():
            future.set_exception(error)
