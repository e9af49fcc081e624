"""Opening the file, and what SQLite's errors mean to a person."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Literal

from plaita.backends.sqlite.schema import is_current, prepare
from plaita.base.errors import Unavailable

Synchronous = Literal["FULL", "NORMAL"]
OPEN_WAIT_MS = 5_000
OPEN_TRIES = 100
GLANCE_MS = 100

_PRAGMAS = (
    "PRAGMA cache_size = -65536",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA mmap_size = 268435456",
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA busy_timeout = 0",
)

_MEANINGS = {
    "SQLITE_BUSY": ("is locked by another process", "end the process that keeps it locked, then try again"),
    "SQLITE_LOCKED": ("is locked by another process", "end the process that keeps it locked, then try again"),
    "SQLITE_READONLY": ("is read-only", "make the file and its directory writable for this user"),
    "SQLITE_FULL": ("cannot grow: the disk is full", "free some space, then try again"),
    "SQLITE_CANTOPEN": ("cannot be opened", "check that the directory exists and is writable for this user"),
    "SQLITE_NOTADB": ("is not an SQLite database", "name another file, or move this one away"),
    "SQLITE_CORRUPT": ("is damaged", "restore a backup; `sqlite3 FILE '.recover'` may save what is left"),
    "SQLITE_PERM": ("may not be used by this user", "make the file and its directory writable for this user"),
    "SQLITE_IOERR": ("cannot be read or written", "check the disk; network file systems are not supported"),
}


def open_file(path: Path, synchronous: Synchronous) -> sqlite3.Connection:
    """Open a store, creating or migrating it; a file that cannot be used is ``Unavailable``."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, isolation_level=None, timeout=OPEN_WAIT_MS / 1000, cached_statements=512)
    except (sqlite3.Error, OSError) as e:
        raise unavailable(e, path) from e
    try:
        _set_up(db, path, synchronous)
    except sqlite3.Error as e:
        db.close()
        raise unavailable(e, path) from e
    except BaseException:
        db.close()
        raise
    return db


def is_ready(path: Path) -> bool:
    """Can the store be read now, as it is? Nothing is created, migrated or long waited for."""
    try:
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=GLANCE_MS / 1000)
    except sqlite3.Error:
        return False
    try:
        return is_current(db)
    except sqlite3.Error:
        return False
    finally:
        db.close()


def _set_up(db: sqlite3.Connection, path: Path, synchronous: Synchronous) -> None:
    if not is_current(db):
        db.execute("BEGIN IMMEDIATE")
        try:
            prepare(db, path)
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")
    _log_ahead(db)
    db.execute(f"PRAGMA synchronous = {synchronous}")
    for pragma in _PRAGMAS:
        db.execute(pragma)


def _log_ahead(db: sqlite3.Connection) -> None:
    """Have the file use a write-ahead log. Other processes may be creating the store at the same time.

    SQLite refuses to change to the log while somebody writes, without waiting; so an empty transaction waits.
    """
    for left in reversed(range(OPEN_TRIES)):
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as e:
            if not is_busy(e) or not left:
                raise
        db.execute("BEGIN IMMEDIATE")
        db.execute("COMMIT")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else holds the write lock."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def unavailable(error: Exception, path: Path) -> Unavailable:
    """What happened to which file, and what to do next."""
    name = getattr(error, "sqlite_errorname", "")
    if isinstance(error, PermissionError):
        name = "SQLITE_PERM"
    for prefix, (what, hint) in _MEANINGS.items():
        if name.startswith(prefix):
            return Unavailable(f"the store {path} {what} ({error})", hint)
    return Unavailable(f"the store {path} cannot be used ({error})", "check the file and its directory")
