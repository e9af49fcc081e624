"""A copy of a store that others go on writing."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from plaita.backends.sqlite.connection import unavailable
from plaita.base.errors import Unavailable

PAGES_AT_ONCE = 1_000


def copy_store(source: Path, target: Path) -> None:
    """Copy with SQLite's own online backup, check the copy, then give it its name.

    Raises ``Unavailable``; then there is nothing at ``target`` that was not there before.
    """
    draft = target.with_name(f"{target.name}.{os.getpid()}.draft")
    try:
        _copy(source, draft)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(target)
    except (sqlite3.Error, OSError) as e:
        raise unavailable(e, target) from e
    finally:
        draft.unlink(missing_ok=True)


def _copy(source: Path, draft: Path) -> None:
    original, copy = sqlite3.connect(source), sqlite3.connect(draft)
    try:
        original.backup(copy, pages=PAGES_AT_ONCE)
        copy.execute("PRAGMA journal_mode = DELETE")
        verdict = copy.execute("PRAGMA integrity_check").fetchone()[0]
    finally:
        copy.close()
        original.close()
    if verdict != "ok":
        raise Unavailable(f"the copy of {source} is not sound: {verdict}", "look at the store with plaita doctor")
