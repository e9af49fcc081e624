"""The published compiler as an oracle: one source compiled by both packages gives flows with equal results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from bench.subjects import peer_python
from tests.diff.programs import CHILDREN, PROGRAMS, A, Z

PLAYER = Path(__file__).parent / "codeflow_player.py"


class Compiler:
    """One package in a process of its own."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, str(PLAYER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def play(self, source: str, value: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps({"source": source, "input": value}), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def compilers() -> Iterator[tuple[Compiler, Compiler]]:
    try:
        theirs = peer_python()
    except (OSError, subprocess.CalledProcessError) as e:
        pytest.skip(f"the environment of the published package cannot be built here: {e}")
    found = Compiler(sys.executable), Compiler(theirs)
    yield found
    for compiler in found:
        compiler.close()


def source_of(body: str) -> str:
    head = '@flow("program", global_context={"rate": 7})\ndef program():\n'
    return f"from plaita.dsl.codeflow import *\n{CHILDREN}{head}{indent(body, '    ')}\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_source_means_the_same_to_both_compilers(name: str, compilers: tuple[Compiler, Compiler]) -> None:
    ours, theirs = compilers
    for value in (A, Z):
        here, there = ours.play(source_of(PROGRAMS[name]), value), theirs.play(source_of(PROGRAMS[name]), value)
        assert "text" not in here.get("error", {}), here
        assert here == there
