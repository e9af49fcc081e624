"""What an operator should know of the file: looked up, measured, said in words."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Final

from plaita.backends.sqlite.connection import Synchronous, unavailable
from plaita.base.clock import Clock
from plaita.ports.backend import Finding, Health

FREE_MIN: Final = (200 * 2**20, 2 * 2**30)
"""Free bytes beside the store: below the first it is a failure, below the second a warning."""
LOG_MAX: Final = 512 * 2**20
LOOKS: Final = 20
SLOW_MS: Final = 50.0


def examine(path: Path, synchronous: Synchronous, clock: Clock) -> list[Finding]:
    """Reads only, over a connection of its own. Raises ``Unavailable`` for a file that cannot be read at all."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
            return [_durability(synchronous), _soundness(db), *_space(path), *_log(path), _latency(db, clock)]
    except sqlite3.Error as e:
        raise unavailable(e, path) from e


def _durability(synchronous: Synchronous) -> Finding:
    if synchronous == "FULL":
        return Finding("durability", "ok", "an accepted commit survives a power cut")
    told = "an accepted commit survives the death of any process, not a power cut"
    return Finding("durability", "warning", told, "PLAITA_SQLITE_SYNCHRONOUS=FULL")


def _soundness(db: sqlite3.Connection) -> Finding:
    found = [row[0] for row in db.execute("PRAGMA quick_check(5)").fetchall()]
    if found == ["ok"]:
        return Finding("file", "ok", f"the file is sound (SQLite {sqlite3.sqlite_version})")
    return Finding("file", "failed", f"the file is damaged: {'; '.join(found)}", "stop the workers, restore a backup")


def _space(path: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(path.parent).free
    told = f"{free / 2**30:.1f} GiB are free beside the store"
    if free >= FREE_MIN[1]:
        yield Finding("disk", "ok", told)
    else:
        status: Health = "failed" if free < FREE_MIN[0] else "warning"
        yield Finding("disk", status, f"{told}; a full disk stops every execution", "free some space, or plaita prune")


def _log(path: Path) -> Iterator[Finding]:
    log = path.with_name(f"{path.name}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size > LOG_MAX:
        told = f"{log.name} has grown to {size / 2**20:.0f} MiB: a program keeps the store open for a long read"
        yield Finding("log", "warning", told, f"find it with lsof {path} and end it")


def _latency(db: sqlite3.Connection, clock: Clock) -> Finding:
    took = []
    for _ in range(LOOKS):
        begun = clock.elapsed_ms()
        db.execute("SELECT contact FROM store").fetchone()
        took.append(clock.elapsed_ms() - begun)
    told = f"a look takes {median(took):.2f} ms"
    if median(took) <= SLOW_MS:
        return Finding("latency", "ok", told)
    return Finding("latency", "warning", told, "keep the store on a local disk; network file systems are not supported")
