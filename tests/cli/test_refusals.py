"""What is wrong is said once, on stderr, with the right exit code, and nothing is written."""

from __future__ import annotations

import sqlite3
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.shell import COMMAND, EXAMPLES, Shell

pytestmark = pytest.mark.timeout(60)

EXPENSE = EXAMPLES / "expense.yaml"
GOOD = "flow_id: x\nnodes:\n  - {id: s, type: start, next: e}\n  - {id: e, type: end, output: $INPUT}\n"
WAITS = GOOD.replace("next: e", "next: d") + "  - {id: d, type: delay, delay_seconds: 9, next: e}\n"


@dataclass(frozen=True)
class Row:
    """A command that cannot work: its exit code, its reference, and words of its message."""

    line: str
    code: int
    reference: str
    words: tuple[str, ...]
    flow: str = GOOD


ROWS = {
    "unknown file": Row("run nope.yaml", 4, "PLT-E04", ("no flow file nope.yaml",)),
    "nearly the name": Row("run flo.yaml", 4, "PLT-E04", ("did you mean 'flow.yaml'?",)),
    "bad YAML": Row("run flow.yaml", 2, "PLT-E01", ("not YAML",), "flow_id: x\nnodes:\n  - {id: s, type: start\n"),
    "unknown type": Row("run flow.yaml", 2, "PLT-E01", ("did you mean 'start'?",), GOOD.replace("start,", "strat,")),
    "bad pair": Row("run flow.yaml -i amount", 2, "PLT-E02", ("-i amount", "KEY=VALUE")),
    "bad nesting": Row("run flow.yaml -i a=1 -i a.b=2", 2, "PLT-E02", ("a is not an object",)),
    "missing input": Row(f"run {EXPENSE} -i amount=1", 2, "PLT-E02", ("$.employee", "required")),
    "wrong input": Row(f"run {EXPENSE} -i employee=x -i amount=abc", 2, "PLT-E02", ("$.amount", "a number")),
    "input is no object": Row("run flow.yaml --input -", 2, "PLT-E02", ("--input -",)),
    "unknown input file": Row("run flow.yaml -i a=@nope", 4, "PLT-E04", ("nope",)),
    "unknown import": Row("run flow.yaml --import nomod", 4, "PLT-E04", ("nomod cannot be imported",)),
    "waits once": Row("run flow.yaml --once", 1, "PLT-E03", ("'d' waits",), WAITS),
    "no store": Row("ps", 5, "PLT-E06", ("there is no store",)),
    "bad store": Row("ps --store foo", 2, "PLT-E02", ("--store", "sqlite:///PATH")),
    "store of another kind": Row("ps --store postgresql://localhost", 2, "PLT-E02", ("postgresql://localhost",)),
    "store in no directory": Row("inspect x --store sqlite:///no/x.db", 5, "PLT-E06", ("no/x.db",)),
    "bad data": Row("resume x --data {a", 2, "PLT-E02", ("--data", "not JSON")),
    "worker of its own": Row("worker --store memory:", 2, "PLT-E08", ("memory:",)),
    "no flow in it": Row("validate --json nope.yaml", 4, "PLT-E04", ("nope.yaml",)),
    "bad status": Row("ps --status wat", 2, "usage", ("suspended",)),
    "bad time": Row("start flow.yaml --not-before soon", 2, "usage", ("PT10M",)),
    "nothing named": Row("run", 2, "usage", ("--continue ID",)),
    "unknown option": Row("ps --nope", 2, "usage", ("--nope",)),
    "no store is used": Row("test flow.yaml --store sqlite:///x.db", 2, "usage", ("--store",)),
    "unknown command": Row("nope", 2, "usage", ("nope",)),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))
def test_a_command_that_cannot_work_says_so_and_writes_nothing(shell: Shell, row: Row) -> None:
    shell.write("flow.yaml", row.flow)
    before = shell.files()
    told = shell.plaita(f"{row.line} --json", stdin="[]")
    assert (told.code, told.out) == (row.code, "")
    text = told.err
    assert told.error["code"] == row.reference
    for word in row.words:
        assert word in text
    assert shell.files() == before


def test_an_error_in_words_has_place_and_hint_and_no_traceback_unless_asked_for(shell: Shell) -> None:
    shell.write("flow.yaml", GOOD.replace("next: e", "next: f"))
    told = shell.plaita("run flow.yaml")
    assert told.err.startswith("error: flow.yaml cannot be loaded: ")
    assert "line 3, column" in told.err
    assert "Traceback" not in told.err
    assert "Traceback" in shell.plaita("run flow.yaml --debug").err


def test_a_waiting_flow_on_a_store_names_what_is_unknown(shell: Shell) -> None:
    shell.write("flow.yaml", GOOD)
    shell.plaita("run flow.yaml")
    for line in ("inspect x", "wait x", "resume x", "retry x", "delete x", "run --continue x", "approve x", "start x"):
        told = shell.plaita(f"{line} --json")
        assert told.code == 4, line
    cancelled = shell.plaita("cancel x y --json")
    assert cancelled.code == 4
    assert [item["error"]["code"] for item in cancelled.json["items"]] == ["PLT-E04", "PLT-E04"]


def test_a_file_that_is_not_ours_is_not_touched(shell: Shell) -> None:
    text = shell.write("notes.db", "these are notes, not a store\n")
    assert shell.plaita("ps --store sqlite:///notes.db --json").error["code"] == "PLT-E06"
    assert text.read_text() == "these are notes, not a store\n"
    other = sqlite3.connect(shell.folder / "other.db")
    other.execute("CREATE TABLE t (x)")
    other.close()
    told = shell.plaita("ps --store sqlite:///other.db")
    assert (told.code, "not a plaita store" in told.err) == (5, True)


def test_a_store_of_a_newer_version_is_refused(shell: Shell) -> None:
    shell.write("flow.yaml", GOOD)
    shell.plaita("run flow.yaml --store sqlite:///s.db")
    file = sqlite3.connect(shell.folder / "s.db")
    file.execute("PRAGMA user_version = 99")
    file.close()
    told = shell.plaita("ps --store sqlite:///s.db")
    assert (told.code, "newer plaita" in told.err) == (5, True)


def test_a_locked_store_is_named_as_locked(shell: Shell) -> None:
    shell.write("flow.yaml", GOOD)
    shell.plaita("run flow.yaml --store sqlite:///s.db")
    file = sqlite3.connect(shell.folder / "s.db")
    try:
        file.execute("BEGIN IMMEDIATE")
        told = shell.plaita("start flow.yaml --store sqlite:///s.db --json")
    finally:
        file.close()
    assert (told.code, told.error["code"]) == (5, "PLT-E06")
    assert "locked" in told.err


def test_a_vote_that_cannot_count_is_refused_and_nothing_changes(shell: Shell) -> None:
    shell.plaita(f"run {EXPENSE} -i employee=dora -i amount=480")
    [task] = shell.plaita("inbox --json").json["items"]
    stranger = shell.plaita(f"approve {task['task_id']} --by zoe --json")
    assert (stranger.code, stranger.error["kind"]) == (1, "resume_refused")
    assert "ann, bob, cleo" in stranger.error["hint"]
    shell.plaita(f"approve {task['task_id']} --by ann")
    assert shell.plaita(f"approve {task['task_id']} --by ann").code == 1
    [same] = shell.plaita("inbox --json").json["items"]
    assert len(same["votes"]) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is full")
def test_a_disk_that_is_full_below_the_output_is_told_of(shell: Shell) -> None:
    shell.write("flow.yaml", GOOD)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "validate", "flow.yaml", "--json"],
            cwd=shell.folder,
            env=shell.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, "the output cannot be written" in done.stderr) == (1, True)
    assert "bug" not in done.stderr
