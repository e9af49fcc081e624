"""What is true of the SQLite file alone: whose it is, its version, its locks, its group commit."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from plaita.backends.limits import SPARED_MS, Limits
from plaita.backends.rows import Rows
from plaita.backends.sqlite import SqliteBackend
from plaita.backends.sqlite.connection import unavailable
from plaita.backends.sqlite.gate import SqliteGate
from plaita.backends.sqlite.schema import APPLICATION_ID, MIGRATIONS, VERSION
from plaita.backends.sqlite.shelf import SPARE
from plaita.backends.verbs.accept import accept
from plaita.base.clock import SystemClock
from plaita.base.errors import Unavailable
from plaita.ports.inbox import Started
from plaita.ports.runs import Arm, Keep, Settled, Stale, Step, Submitted
from plaita.ports.values import RunId
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.stage import START_MS, Stage, hand, start


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "store.db"


def pragma(path: Path, name: str) -> object:
    db = sqlite3.connect(path)
    try:
        return db.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        db.close()


async def test_opening_creates_the_folder_and_marks_the_file(path: Path) -> None:
    await SqliteBackend(path).close()
    assert pragma(path, "application_id") == APPLICATION_ID
    assert pragma(path, "user_version") == VERSION
    assert pragma(path, "journal_mode") == "wal"


def test_a_foreign_database_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE mine (a)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(Unavailable, match="not a plaita store") as caught:
        SqliteBackend(path)
    assert caught.value.hint
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("this is a text of more than one hundred bytes, so that it cannot be a header" * 3)
    with pytest.raises(Unavailable, match="is not an SQLite database"):
        SqliteBackend(path)


async def test_a_store_of_a_newer_version_is_refused(path: Path) -> None:
    await SqliteBackend(path).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    with pytest.raises(Unavailable, match="newer plaita"):
        SqliteBackend(path)


async def test_an_older_store_is_copied_before_it_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("CREATE TABLE notes (text)")
    db.execute("INSERT INTO notes VALUES ('kept')")
    db.commit()
    db.close()
    store = SqliteBackend(path)
    assert isinstance(await store.submit(start()), Submitted)
    await store.close()
    copy = sqlite3.connect(tmp_path / "old.db.v0.backup")
    assert copy.execute("SELECT text FROM notes").fetchall() == [("kept",)]
    assert copy.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)
    copy.close()


def test_a_read_only_store_says_so_and_what_to_do(path: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.db"
    sqlite3.connect(plain).close()
    db = sqlite3.connect(f"file:{plain}?mode=ro", uri=True)
    with pytest.raises(sqlite3.OperationalError) as caught:
        db.execute("CREATE TABLE t (a)")
    db.close()
    error = unavailable(caught.value, path)
    assert "is read-only" in str(error)
    assert "writable" in error.hint


def test_a_path_that_cannot_be_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be opened"):
        SqliteBackend(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable):
        SqliteBackend(tmp_path / "file" / "store.db")


async def test_a_store_that_stays_locked_is_unavailable_after_a_while(path: Path) -> None:
    store = SqliteBackend(path, limits=replace(Limits(), lock_wait_ms=20))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked by another process"):
        await store.submit(start())
    other.execute("ROLLBACK")
    assert isinstance(await store.submit(start()), Submitted)
    other.close()
    await store.close()


@contextmanager
def another_writes(path: Path, ms: int) -> Iterator[None]:
    """Another connection holds the write lock for so long."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    ends = threading.Timer(ms / 1000, lambda: other.execute("ROLLBACK"))
    ends.start()
    try:
        yield
    finally:
        ends.join()
        other.close()


async def test_a_store_is_opened_while_another_process_creates_it(path: Path) -> None:
    await SqliteBackend(path).close()
    pragma(path, "journal_mode = DELETE")
    with another_writes(path, 50):
        await SqliteBackend(path).close()
    assert pragma(path, "journal_mode") == "wal"


async def test_a_store_with_waiting_starts_is_opened_while_another_process_writes(path: Path) -> None:
    store = SqliteBackend(path, cap=1)
    for name in ("r", "s"):
        await store.submit(start(name))
    with another_writes(path, 50):
        await SqliteBackend(path, cap=1).close()
    await store.close()


def test_a_look_into_a_file_that_another_process_is_leaving_is_taken_again(path: Path) -> None:
    gate = SqliteGate(path, SystemClock(), Limits(), "FULL")
    looks: list[Rows] = []

    def question(rows: Rows) -> int:
        looks.append(rows)
        if len(looks) == 1:
            busy = sqlite3.OperationalError("database is locked")
            busy.sqlite_errorname = "SQLITE_BUSY"
            raise busy
        return len(looks)

    assert gate.read(question) == 2
    gate.close()


async def test_a_verb_waits_for_another_process_without_stopping_the_loop(path: Path) -> None:
    store = SqliteBackend(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(store.submit(start()))
        await asyncio.wait([answer], timeout=0.02)
        assert not answer.done()
        other.execute("ROLLBACK")
    assert isinstance(answer.result(), Submitted)
    other.close()
    await store.close()


async def test_a_failing_verb_harms_no_neighbour_of_its_tick(path: Path) -> None:
    store = SqliteBackend(path)
    stage = Stage(store, HandClock())
    claim = await stage.keep(await stage.hold("bad"), hand())

    def broken(rows: Rows) -> None:
        raise sqlite3.IntegrityError("broken on purpose")

    answers = await asyncio.gather(
        store.submit(start("a")),
        stage.settle(claim, Keep(), arms=(hand(),), delta={"k": b"1"}),
        store._sqlite.write(broken),
        store.settle(Step(RunId("bad"), replace(claim.token, nonce="other"), 2, "d", {}, Keep())),
        store.submit(start("b")),
        return_exceptions=True,
    )
    assert [type(a) for a in answers] == [Submitted, ValueError, Unavailable, Stale, Submitted]
    assert await store.frames(RunId("bad")) == {}
    assert isinstance(await stage.settle(claim, Keep()), Settled)
    assert await store.audit() == []
    await store.close()


async def test_a_disk_that_is_full_in_the_middle_of_a_tick_refuses_whole_verbs_and_harms_nothing(path: Path) -> None:
    store = SqliteBackend(path)
    stage = Stage(store, HandClock())
    claim = await stage.hold("held")
    store._sqlite._db.execute("PRAGMA max_page_count = 1").fetchone()
    large = {f"k{n}": b"x" * 100_000 for n in range(3)}
    answers = await asyncio.gather(
        *(store.submit(start(f"r{n}", business_key="k" * 4_000)) for n in range(20)),
        store.settle(stage.step(claim, Keep(), delta=large)),
        return_exceptions=True,
    )
    assert {type(a) for a in answers} <= {Submitted, Unavailable}
    assert isinstance(answers[-1], Unavailable)
    assert "disk is full" in str(answers[-1])
    assert await store.frames(RunId("held")) == {}
    views, _ = await store.runs()
    assert len(views) == 1 + sum(isinstance(a, Submitted) for a in answers)
    store._sqlite._db.execute("PRAGMA max_page_count = 1000000").fetchone()
    assert isinstance(await store.settle(stage.step(claim, Keep(), delta=large)), Settled)
    assert await store.audit() == []
    await store.close()


async def test_more_verbs_than_a_batch_holds_are_all_answered(path: Path) -> None:
    store = SqliteBackend(path, synchronous="NORMAL")
    answers = await asyncio.gather(*(store.submit(start(f"r{n}")) for n in range(200)))
    assert all(isinstance(a, Submitted) for a in answers)
    runs, _ = await store.runs(limit=500)
    assert len(runs) == 200
    await store.close()


async def test_a_caller_that_gave_up_before_the_commit_wrote_nothing(path: Path) -> None:
    store = SqliteBackend(path)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(store.submit(start()))
        await asyncio.sleep(0)
        task.cancel()
    assert await store.run(RunId("r")) is None
    await store.close()


async def test_closing_fails_what_still_waits(path: Path) -> None:
    store = SqliteBackend(path)
    task = asyncio.ensure_future(store.submit(start()))
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(Unavailable, match="was closed"):
        await task


async def test_what_is_stored_is_there_after_opening_again(path: Path) -> None:
    clock = HandClock()
    first = SqliteBackend(path, clock)
    stage = Stage(first, clock)
    claim = await stage.keep(await stage.hold(), Arm(hand().wait_id, "hand", "n", "n"), delta={"a": b"1"})
    await first.close()
    second = SqliteBackend(path, clock)
    assert await second.reload(RunId("r"), claim.token) == claim
    assert await second.frames(RunId("r")) == {"a": b"1"}
    await second.close()


async def test_a_cap_that_was_lifted_while_closed_lets_waiting_runs_go(path: Path) -> None:
    clock = HandClock()
    first = SqliteBackend(path, clock, cap=1)
    for name in ("a", "b", "c"):
        await first.submit(start(name))
    await first.close()
    second = SqliteBackend(path, clock)
    assert await second.audit() == []
    assert len(await Stage(second, clock).take(9)) == 3
    await second.close()


async def test_an_idle_claim_writes_nothing(path: Path) -> None:
    clock = HandClock()
    store = SqliteBackend(path, clock)
    stage = Stage(store, clock)
    await stage.take()
    other = sqlite3.connect(path)
    before = other.execute("PRAGMA data_version").fetchone()
    assert await stage.take() == []
    assert other.execute("PRAGMA data_version").fetchone() == before
    other.close()
    await store.close()


async def test_accepting_an_empty_inbox_writes_nothing(path: Path) -> None:
    store = SqliteBackend(path)
    other = sqlite3.connect(path)
    before = other.execute("PRAGMA data_version").fetchone()
    assert await store.accept(9) == []
    assert other.execute("PRAGMA data_version").fetchone() == before
    other.close()
    await store.close()


async def test_a_message_survives_the_process_that_took_it(path: Path) -> None:
    first = SqliteBackend(path)
    await first.offer("m", b'{"type": "cancel", "execution_id": "r"}')
    await first.close()
    second = SqliteBackend(path)
    assert await second.backlog() == 1
    [accepted] = await second.accept(9)
    assert accepted.outcome.reason == "no_run"  # type: ignore[union-attr]
    await second.close()


async def test_a_message_whose_effect_fails_stays_in_the_inbox(path: Path) -> None:
    store = SqliteBackend(path)
    await store.publish_flow("f", "1", "c")
    await store.offer("m", b'{"type": "start", "flow_id": "f", "execution_id": "r"}')

    def broken(rows: Rows) -> None:
        accept(rows, 9)
        raise sqlite3.IntegrityError("broken on purpose")

    with pytest.raises(Unavailable):
        await store._sqlite.write(broken)
    assert (await store.backlog(), await store.run(RunId("r"))) == (1, None)
    assert [type(a.outcome) for a in await store.accept(9)] == [Started]
    await store.close()


async def test_a_hint_notices_what_another_connection_wrote(path: Path) -> None:
    one, two = SqliteBackend(path), SqliteBackend(path)
    await one.hint(0)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        hint = group.create_task(one.hint(600_000))
        await asyncio.sleep(0)
        await two.submit(start())
        await hint
    await one.close()
    await two.close()


async def test_starts_of_one_flow_after_the_other_note_its_use_once(path: Path) -> None:
    clock = HandClock()
    store = SqliteBackend(path, clock)
    await store.put_closure("closure", b"{}")
    other = sqlite3.connect(path)
    before = other.execute("PRAGMA data_version").fetchone()
    clock.advance(SPARED_MS // 2)
    await store.put_closure("closure", b"{}")
    assert other.execute("PRAGMA data_version").fetchone() == before
    clock.advance(1)
    await store.put_closure("closure", b"{}")
    assert other.execute("SELECT at FROM uses").fetchall() == [(clock.now_ms(),)]
    other.close()
    await store.close()


def test_who_has_a_definition_is_looked_up_in_an_index(path: Path) -> None:
    store = SqliteBackend(path)
    plan = store._sqlite._db.execute(f"EXPLAIN QUERY PLAN {SPARE}", (0, 1)).fetchall()
    store._sqlite.close()
    steps = [step for _, _, _, step in plan]
    assert "SEARCH starts USING COVERING INDEX starts_closure (closure=?)" in steps
    assert [step for step in steps if step.startswith("SCAN")] == ["SCAN uses", "SCAN flows", "SCAN outbox"]


async def test_definitions_of_an_older_store_were_used_when_it_was_last_heard_of(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for version in range(4):
        MIGRATIONS[version](db)
    db.execute("PRAGMA user_version = 4")
    db.execute("UPDATE store SET contact = ?", (START_MS,))
    db.execute("INSERT INTO closures VALUES ('closure', '{}')")
    clock = HandClock(START_MS + SPARED_MS)
    store = SqliteBackend(path, clock)
    # A process of that version still has the file open.
    db.execute("INSERT OR IGNORE INTO closures VALUES ('late', '{}')")
    db.close()
    await store.prune(clock.now_ms())
    assert await store.closure("closure") is not None
    clock.advance(1)
    await store.prune(clock.now_ms())
    assert await store.closure("closure") is None
    assert await store.closure("late") is not None
    await store.close()
