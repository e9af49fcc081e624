"""A copy of a store that others go on writing."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from plaita.backends.sqlite.connection import unavailable
from plaita.base.clock import new_id
from plaita.base.errors import Conflict, Unavailable

PAGES_AT_ONCE = 1_000


def copy_store(source: Path, target: Path, *, replace: bool = True) -> None:
    """Copy with SQLite's own online backup, check the copy, then give it its name.

    Raises ``Conflict`` for a target that no copy may replace and ``Unavailable``; then there is nothing at ``target``
    that was not there before.
    """
    if not replace and os.path.lexists(target):
        raise _taken(target)
    _check_target(source, target)
    draft = target.with_name(f"{target.name}.{new_id()}.draft")
    try:
        # A copy says all that the store says: nobody but its owner reads it, wherever it goes.
        os.close(os.open(draft, os.O_CREAT | os.O_WRONLY, 0o600))
        _copy(source, draft)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        if replace:
            draft.replace(target)
        else:
            _name(draft, target)
    except FileExistsError:
        raise _taken(target) from None
    except (sqlite3.Error, OSError) as e:
        raise unavailable(e, target) from e
    finally:
        draft.unlink(missing_ok=True)


def _check_target(source: Path, target: Path) -> None:
    """Replacing a store that is open would lose what is written meanwhile, and leave its log to a file it is not of."""
    if not target.exists():
        return
    if target.samefile(source):
        raise Conflict(f"{target} is the store itself", "name another file: a copy in its place would lose data")
    if not target.is_file():
        raise Conflict(f"{target} is no regular file", "name another file")
    log = target.with_name(f"{target.name}-wal")
    if log.exists():
        hint = "name another file, or stop every process of that store"
        raise Conflict(f"{target} is a store in use: there is {log.name} beside it", hint)


def _name(draft: Path, target: Path) -> None:
    """Give a file its name unless something has it: whoever comes second loses, however late he comes."""
    try:
        target.hardlink_to(draft)
    except FileExistsError:
        raise
    except OSError:
        # A file system without links: the name is taken by an empty file, which the copy then replaces.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        draft.replace(target)


def _taken(target: Path) -> Conflict:
    return Conflict(f"{target} exists", "name another file, or --force replaces it")


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
