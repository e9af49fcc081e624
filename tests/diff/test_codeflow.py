"""The published compiler as an oracle: one source compiled by both packages gives flows with equal results."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent

import pytest

from tests.diff.packages import Player, both
from tests.diff.programs import CHILDREN, PROGRAMS, A, Z

# The first one may have to install the published package.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def compilers() -> Iterator[tuple[Player, Player]]:
    with both("codeflow_player.py") as found:
        yield found


def source_of(body: str) -> str:
    head = '@flow("program", global_context={"rate": 7})\ndef program():\n'
    return f"from plaita.dsl.codeflow import *\n{CHILDREN}{head}{indent(body, '    ')}\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_source_means_the_same_to_both_compilers(name: str, compilers: tuple[Player, Player]) -> None:
    ours, theirs = compilers
    for value in (A, Z):
        source = source_of(PROGRAMS[name])
        here, there = ours.play(source=source, input=value), theirs.play(source=source, input=value)
        assert "text" not in here.get("error", {}), here
        assert here == there
