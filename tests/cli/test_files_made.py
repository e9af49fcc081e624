"""Commands that write a file: never over what they read, never in the place of a device."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.shell import EXAMPLES, Shell

SOURCE = 'from plaita.dsl.codeflow import flow\n\n\n@flow("x")\ndef x():\n    return 1\n'
FLOW = "flow_id: x\nnodes:\n  - {id: s, type: start, next: e}\n  - {id: e, type: end}\n"


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [("x.py", SOURCE, "build x.py -o x.py"), ("x.yaml", FLOW, "graph x.yaml --format svg -o x.yaml")],
)
def test_the_source_is_never_written_over(shell: Shell, name: str, text: str, line: str) -> None:
    (shell.folder / name).write_text(text)
    refused = shell.plaita(line)
    assert (refused.code, "is the source itself" in refused.err) == (1, True)
    assert (shell.folder / name).read_text() == text


@pytest.mark.parametrize("line", ["build x.py -o pipe", "graph x.yaml -o pipe"])
def test_a_pipe_stays_a_pipe(shell: Shell, line: str) -> None:
    (shell.folder / "x.py").write_text(SOURCE)
    (shell.folder / "x.yaml").write_text(FLOW)
    pipe = shell.folder / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    done = shell.plaita(line)
    assert (done.code, pipe.is_fifo(), b"x" in os.read(reader, 65_536)) == (0, True, True), done.err
    os.close(reader)


def test_a_source_with_a_byte_order_mark_is_built(shell: Shell) -> None:
    (shell.folder / "x.py").write_bytes(b"\xef\xbb\xbf" + SOURCE.encode())
    assert shell.plaita("build x.py").code == 0


def test_an_empty_id_starts_nothing(shell: Shell) -> None:
    (shell.folder / "x.yaml").write_text(FLOW)
    refused = shell.plaita("start x.yaml --id ''")
    assert (refused.code, "--id is empty" in refused.err) == (2, True)
    assert not Path(shell.folder / ".plaita").exists()


def test_the_same_start_twice_says_what_the_execution_does_in_the_words_of_the_lists(shell: Shell) -> None:
    line = f"start {EXAMPLES / 'expense.yaml'} -i employee=dora -i amount=480 --id e-1"
    shell.plaita(line)
    shell.plaita("wait e-1")
    assert shell.plaita(line).err == "this start was made before; the execution is waiting\n"
