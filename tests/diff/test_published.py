"""The published package as an oracle: random flows of what both do alike give the same, node by node.

``PLAITA_DIFF_SEEDS`` (a number, or ``from:to``) makes the search longer. The package is installed from the index into
an environment of its own; where that cannot be built there is nothing to compare with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.subjects import peer_python
from tests.diff.common_flows import INPUT, generate

PLAYER = Path(__file__).parent / "player.py"
SEEDS = 100
CHUNK = 25
ABORTED = {-9527: -520}
"""The code of a failed node without one of its own, there and here."""


def seeds() -> range:
    first, _, last = os.environ.get("PLAITA_DIFF_SEEDS", str(SEEDS)).rpartition(":")
    return range(int(first or 0), int(last))


class Player:
    """One package in a process of its own."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, str(PLAYER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def play(self, flow: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps({"flow": flow, "input": INPUT}), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture(scope="module")
def players() -> Iterator[tuple[Player, Player]]:
    try:
        theirs = peer_python()
    except (OSError, subprocess.CalledProcessError) as e:
        pytest.skip(f"the environment of the published package cannot be built here: {e}")
    found = Player(sys.executable), Player(theirs)
    yield found
    for player in found:
        player.close()


def alike(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what is decided otherwise."""
    error = answer.get("error")
    if error is not None and "code" in error:
        answer["error"] = {"code": ABORTED.get(error["code"], error["code"]), "type": error["type"]}
    return answer


@pytest.mark.timeout(300)
@pytest.mark.parametrize("chunk", range(0, len(seeds()), CHUNK))
def test_both_packages_give_the_same_in_the_same_order(chunk: int, players: tuple[Player, Player]) -> None:
    ours, theirs = players
    for seed in seeds()[chunk : chunk + CHUNK]:
        flow = generate(seed)
        here, there = alike(ours.play(flow)), alike(theirs.play(flow))
        assert here == there, f"seed {seed}: {json.dumps(flow)}"


def test_the_flows_have_every_type_and_both_outcomes() -> None:
    flows = [json.dumps(generate(seed)) for seed in range(SEEDS)]
    kinds = ("mock", "if", "switch", "case", "child", "map", "filter", "find", "loop", "reduce", "while")
    assert all(any(f'"type": "{kind}"' in flow for flow in flows) for kind in kinds)
    assert 0 < sum('"resultType": "error"' in flow for flow in flows) < SEEDS / 2
