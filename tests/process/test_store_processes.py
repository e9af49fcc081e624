"""Several processes on one SQLite file: each run is settled once, and the dead are noticed."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from plaita.backends.sqlite import SqliteBackend
from plaita.ports.runs import CancelRequested
from plaita.ports.values import RunId
from plaita.testing.conformance.stage import start

RUNS = 200

WORKER = """
import asyncio, sys
from plaita.backends.sqlite import SqliteBackend
from plaita.base.clock import new_id
from plaita.ports.runs import End, Settled, Step

async def main(path, name):
    store = SqliteBackend(path, synchronous="NORMAL")
    settled = idle = 0
    while idle < 20:
        claims = await store.claim(f"{name}.{new_id()}", 8)
        steps = [Step(c.header.run_id, c.token, 1, "d", {}, End("completed", b"1")) for c in claims]
        answers = await asyncio.gather(*map(store.settle, steps))
        assert all(type(a) is Settled for a in answers), answers
        settled += len(answers)
        idle = 0 if claims else idle + 1
        await asyncio.sleep(0.001)
    print(settled)
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""

HOLDER = """
import asyncio, os, sys
from plaita.backends.sqlite import SqliteBackend
from plaita.ports.processes import Process

async def main(path):
    store = SqliteBackend(path)
    await store.announce(Process("victim", os.getpid(), ("default",), None, (), 0))
    claims = await store.claim("victim.n", 1)
    print(len(claims), flush=True)
    sys.stdin.read()

asyncio.run(main(sys.argv[1]))
"""

FORKED = """
import asyncio, os, sys
from plaita.backends.sqlite import SqliteBackend
from plaita.base.errors import Unavailable
from plaita.ports.processes import Process

async def main(path):
    store = SqliteBackend(path)
    await store.announce(Process("parent", os.getpid(), ("default",), None, (), 0))
    return store

store = asyncio.run(main(sys.argv[1]))
pid = os.fork()
if pid == 0:
    try:
        store._sqlite.read(lambda rows: rows.now)
    except Unavailable as error:
        assert "forked" in str(error), error
    else:
        os._exit(1)
    fresh = SqliteBackend(sys.argv[1])
    alive = asyncio.run(fresh.living())
    os._exit(0 if [p.holder for p in alive] == ["parent"] else 2)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


WRITER = """
import asyncio, sys
from plaita.backends.sqlite import SqliteBackend
from plaita.base.clock import new_id
from plaita.testing.conformance.stage import start

async def main(path):
    store = SqliteBackend(path, synchronous="NORMAL")
    store._sqlite._db.execute("PRAGMA wal_autocheckpoint = 1").fetchone()
    count = 0
    while True:
        await asyncio.gather(*(store.submit(start(new_id())) for _ in range(20)))
        count += 20
        print(count, flush=True)

asyncio.run(main(sys.argv[1]))
"""


def python(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def test_two_processes_settle_every_run_exactly_once(path: Path) -> None:
    store = SqliteBackend(path, synchronous="NORMAL")
    for number in range(RUNS):
        await store.submit(start(f"r{number}"))
    workers = [python(WORKER, path, f"worker{n}") for n in range(2)]
    settled = [int(worker.communicate(timeout=15)[0]) for worker in workers]
    assert sum(settled) == RUNS
    runs, _ = await store.runs(status="completed", limit=RUNS + 1)
    assert len(runs) == RUNS
    assert all((r.seq, r.tries, r.lost) == (1, 1, 0) for r in runs)
    assert await store.audit() == []
    await store.close()
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


async def test_a_killed_process_is_noticed_by_its_lock_and_its_leases_end_at_once(path: Path) -> None:
    store = SqliteBackend(path)
    await store.submit(start())
    victim = python(HOLDER, path)
    assert victim.stdout is not None
    assert victim.stdout.readline() == "1\n"
    assert [p.holder for p in await store.living()] == ["victim"]
    assert await store.bury_dead() == 0
    os.kill(victim.pid, signal.SIGKILL)
    victim.communicate(timeout=10)
    assert await store.living() == []
    assert await store.bury_dead() == 1
    assert await store.bury_dead() == 0
    [claim] = await store.claim("next.n", 1)
    assert (claim.token.generation, claim.header.tries) == (2, 2)
    assert await store.cancel(RunId("r")) == CancelRequested()
    await store.close()


async def test_a_file_whose_writers_are_killed_while_they_move_the_log_into_it_is_whole(path: Path) -> None:
    accepted = 0
    writers = [python(WRITER, path) for _ in range(2)]
    for writer in writers:
        assert writer.stdout is not None
        while int(writer.stdout.readline()) < 60:
            pass
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
    for writer in writers:
        left, _ = writer.communicate(timeout=10)
        accepted += max([60, *(int(line) for line in left.splitlines() if line)])
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    store = SqliteBackend(path)
    assert (await store.counts()).by_status["queued"] >= accepted
    assert await store.audit() == []
    await store.close()


def test_a_forked_child_owns_neither_the_store_nor_the_locks_of_its_parent(path: Path) -> None:
    process = python(FORKED, path)
    process.communicate(timeout=15)
    assert process.returncode == 0
