"""The file: its tables, its version, and how it is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from plaita.base.errors import Unavailable

APPLICATION_ID: Final = 0x706C6169
"""``plai``: what tells our files from other SQLite files."""
VERSION: Final = 5

RUNS: Final = """
CREATE TABLE runs (
    rid INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL UNIQUE, incarnation TEXT NOT NULL, tenant TEXT NOT NULL,
    queue TEXT NOT NULL, priority INTEGER NOT NULL, born INTEGER NOT NULL, status TEXT NOT NULL, nonce TEXT,
    due INTEGER, slot INTEGER NOT NULL, generation INTEGER NOT NULL, cancel INTEGER NOT NULL, parked INTEGER NOT NULL,
    blocked INTEGER NOT NULL, ended INTEGER, lost INTEGER NOT NULL, tries INTEGER NOT NULL, seq INTEGER NOT NULL,
    last_nonce TEXT, last_generation INTEGER NOT NULL, last_digest TEXT NOT NULL, boxn INTEGER NOT NULL,
    unread INTEGER NOT NULL, armed INTEGER NOT NULL, entries INTEGER NOT NULL, retry INTEGER,
    blocked_reason TEXT NOT NULL, reopened INTEGER NOT NULL
);
CREATE INDEX runs_due ON runs (queue, priority, due) WHERE due IS NOT NULL;
CREATE INDEX runs_held ON runs (nonce) WHERE nonce IS NOT NULL;
CREATE INDEX runs_slot ON runs (tenant) WHERE slot = 1;
CREATE INDEX runs_status ON runs (status, rid);
CREATE INDEX runs_ended ON runs (ended) WHERE ended IS NOT NULL;
CREATE TABLE starts (
    rid INTEGER PRIMARY KEY, digest TEXT NOT NULL, flow_id TEXT NOT NULL, closure TEXT NOT NULL,
    flow_version TEXT NOT NULL, entry TEXT NOT NULL, business_key TEXT NOT NULL, tags TEXT NOT NULL,
    not_before INTEGER, parent_run TEXT, parent_incarnation TEXT, parent_wait TEXT, imports TEXT NOT NULL,
    submitted INTEGER NOT NULL, input BLOB NOT NULL
);
CREATE INDEX starts_flow ON starts (flow_id, rid);
CREATE INDEX starts_business ON starts (business_key, rid) WHERE business_key <> '';
CREATE TABLE tags (tag TEXT NOT NULL, rid INTEGER NOT NULL, PRIMARY KEY (tag, rid)) WITHOUT ROWID;
CREATE INDEX tags_rid ON tags (rid);
CREATE TABLE outcomes (
    rid INTEGER PRIMARY KEY, output BLOB, error BLOB, failures INTEGER NOT NULL, wakeups INTEGER NOT NULL,
    lost_worker INTEGER NOT NULL
);
CREATE TABLE frames (
    rid INTEGER NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (rid, key)
) WITHOUT ROWID;
CREATE TABLE history (
    rid INTEGER NOT NULL, seq INTEGER NOT NULL, count INTEGER NOT NULL, at INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (rid, seq)
) WITHOUT ROWID;
"""

WAITS: Final = """
CREATE TABLE waits (
    rid INTEGER NOT NULL, arm INTEGER NOT NULL, wait_id TEXT NOT NULL, kind TEXT NOT NULL, node_id TEXT NOT NULL,
    address TEXT NOT NULL, event_type TEXT NOT NULL, key TEXT, by_filter INTEGER NOT NULL, reuse INTEGER NOT NULL,
    low INTEGER NOT NULL, since INTEGER NOT NULL, deadline INTEGER, task_id TEXT, child TEXT, state TEXT NOT NULL,
    by_kind TEXT, by_event INTEGER, by_digest TEXT, by_actor TEXT, cand INTEGER, PRIMARY KEY (rid, arm)
) WITHOUT ROWID;
CREATE INDEX waits_listening ON waits (event_type, arm) WHERE state = 'open' AND kind = 'event';
CREATE TABLE mailbox (
    rid INTEGER NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, wait_id TEXT NOT NULL, event INTEGER NOT NULL,
    data BLOB, PRIMARY KEY (rid, number)
) WITHOUT ROWID;
CREATE TABLE consumed (rid INTEGER NOT NULL, event INTEGER NOT NULL, PRIMARY KEY (rid, event)) WITHOUT ROWID;
CREATE TABLE events (
    number INTEGER PRIMARY KEY, event_id TEXT NOT NULL UNIQUE, event_type TEXT NOT NULL, key TEXT, data BLOB NOT NULL,
    at INTEGER NOT NULL, matched INTEGER NOT NULL, woken INTEGER NOT NULL
);
CREATE INDEX events_type ON events (event_type, number);
CREATE INDEX events_key ON events (event_type, key, number) WHERE key IS NOT NULL;
CREATE TABLE tasks (
    number INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL UNIQUE, run_id TEXT NOT NULL, wait_id TEXT NOT NULL,
    flow_id TEXT NOT NULL, node_id TEXT NOT NULL, spec BLOB NOT NULL, status TEXT NOT NULL, version INTEGER NOT NULL,
    created INTEGER NOT NULL, deadline INTEGER, votes BLOB NOT NULL
);
CREATE INDEX tasks_open ON tasks (number) WHERE status = 'open';
CREATE INDEX tasks_run ON tasks (run_id);
CREATE TABLE approvers (
    actor TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (actor, number)
) WITHOUT ROWID;
"""

STORE: Final = """
CREATE TABLE outbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, run_id TEXT NOT NULL, incarnation TEXT NOT NULL,
    wait_id TEXT, event INTEGER NOT NULL, cursor INTEGER NOT NULL, data BLOB NOT NULL, submission BLOB
);
CREATE TABLE inbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT NOT NULL UNIQUE, body BLOB NOT NULL, at INTEGER NOT NULL
);
CREATE TABLE dead_letters (
    number INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT NOT NULL UNIQUE, body BLOB NOT NULL, at INTEGER NOT NULL,
    reason TEXT NOT NULL, detail TEXT NOT NULL, died INTEGER NOT NULL
);
CREATE TABLE quota (rid INTEGER PRIMARY KEY, tenant TEXT NOT NULL, kind INTEGER NOT NULL, number INTEGER NOT NULL);
CREATE INDEX quota_order ON quota (tenant, kind, number);
CREATE TABLE promotions (tenant TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE store (
    one INTEGER PRIMARY KEY CHECK (one = 1), sequence INTEGER NOT NULL, parked INTEGER NOT NULL,
    contact INTEGER NOT NULL, grace INTEGER NOT NULL
);
INSERT INTO store VALUES (1, 0, 0, 0, 0);
CREATE TABLE graves (run_id TEXT PRIMARY KEY, generation INTEGER NOT NULL, buried INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE closures (closure TEXT PRIMARY KEY, document BLOB NOT NULL);
CREATE TABLE flows (
    number INTEGER PRIMARY KEY AUTOINCREMENT, flow_id TEXT NOT NULL, version TEXT NOT NULL, closure TEXT NOT NULL,
    published INTEGER NOT NULL, UNIQUE (flow_id, version)
);
CREATE TABLE processes (
    number INTEGER PRIMARY KEY AUTOINCREMENT, holder TEXT NOT NULL UNIQUE, pid INTEGER NOT NULL, queues TEXT NOT NULL,
    only_run TEXT, imports TEXT NOT NULL, started INTEGER NOT NULL
);
"""

NAMES: Final = """
CREATE TABLE names (name TEXT PRIMARY KEY, run_id TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX names_run ON names (run_id);
"""

LETTERS: Final = """
CREATE TABLE letters (
    number INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT NOT NULL, body BLOB NOT NULL, at INTEGER NOT NULL,
    reason TEXT NOT NULL, detail TEXT NOT NULL, died INTEGER NOT NULL, replays INTEGER NOT NULL
);
INSERT INTO letters SELECT number, message_id, body, at, reason, detail, died, 0 FROM dead_letters;
DROP TABLE dead_letters;
CREATE TABLE deeds (
    number INTEGER PRIMARY KEY AUTOINCREMENT, letter INTEGER NOT NULL, at INTEGER NOT NULL, action TEXT NOT NULL,
    actor TEXT NOT NULL, result TEXT NOT NULL, forced INTEGER NOT NULL, message_id TEXT NOT NULL
);
CREATE INDEX deeds_letter ON deeds (letter, number);
"""

USES: Final = """
CREATE TABLE uses (closure TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO uses SELECT closure, (SELECT contact FROM store) FROM closures;
CREATE INDEX starts_closure ON starts (closure);
"""
"""When each closure was used last: those of an earlier version when the store was last heard of. One that has no row
stays."""

FACTS: Final = "ALTER TABLE processes ADD COLUMN facts TEXT NOT NULL DEFAULT '{}'"

Migration = Callable[[sqlite3.Connection], None]


def writing(*scripts: str) -> Migration:
    """A step that adds tables."""

    def write(db: sqlite3.Connection) -> None:
        for statement in ";".join(scripts).split(";"):
            if statement.strip():
                db.execute(statement)

    return write


MIGRATIONS: Final[Mapping[int, Migration]] = {
    0: writing(RUNS, WAITS, STORE),
    1: writing(NAMES),
    2: writing(FACTS),
    3: writing(LETTERS),
    4: writing(USES),
}
"""How to get from a version to the next one; version 0 is a file of ours that was never filled."""


def prepare(db: sqlite3.Connection, path: Path, migrations: Mapping[int, Migration] = MIGRATIONS) -> None:
    """Bring the file to the current version. A file that is not ours or from a newer version is ``Unavailable``.

    Called inside a write transaction, so that two processes cannot both do it. Before a file with tables is changed, a
    copy of it is kept beside it, named ``<file>.v<old version>.backup``.
    """
    ours, version = _marks(db)
    empty = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if not ours and not empty:
        raise Unavailable(
            f"{path} is an SQLite file, but not a plaita store", "name another file, or move this one away"
        )
    if version > VERSION:
        raise Unavailable(
            f"{path} was written by a newer plaita (store version {version}, this one knows {VERSION})",
            "use the newer plaita, or another store",
        )
    if ours and version == VERSION:
        return
    if not empty:
        _back_up(path, path.with_name(f"{path.name}.v{version}.backup"))
    for step in range(version, VERSION):
        migrations[step](db)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def is_current(db: sqlite3.Connection) -> bool:
    """Whether there is nothing to prepare."""
    return _marks(db) == (True, VERSION)


def _marks(db: sqlite3.Connection) -> tuple[bool, int]:
    ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    return ours, db.execute("PRAGMA user_version").fetchone()[0]


def _back_up(path: Path, copy: Path) -> None:
    """A consistent copy, the write-ahead log included; a reader of its own sees the state before this transaction."""
    source, target = sqlite3.connect(path), sqlite3.connect(copy)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()
