"""The published package as an oracle: random flows of what both do alike give the same, node by node.

``PLAITA_DIFF_SEEDS`` (a number, or ``from:to``) makes the search longer. The package is installed from the index into
an environment of its own; where that cannot be built there is nothing to compare with.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.diff.common_flows import INPUT, generate
from tests.diff.packages import Player, both

SEEDS = 100
CHUNK = 25
ABORTED = {-9527: -520}
"""The code of a failed node without one of its own, there and here."""


def seeds() -> range:
    first, _, last = os.environ.get("PLAITA_DIFF_SEEDS", str(SEEDS)).rpartition(":")
    return range(int(first or 0), int(last))


@pytest.fixture(scope="module")
def players() -> Iterator[tuple[Player, Player]]:
    with both("player.py") as found:
        yield found


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
        here, there = alike(ours.play(flow=flow, input=INPUT)), alike(theirs.play(flow=flow, input=INPUT))
        assert here == there, f"seed {seed}: {json.dumps(flow)}"


def test_the_flows_have_every_type_and_both_outcomes() -> None:
    flows = [json.dumps(generate(seed)) for seed in range(SEEDS)]
    kinds = ("mock", "if", "switch", "case", "child", "map", "filter", "find", "loop", "reduce", "while")
    assert all(any(f'"type": "{kind}"' in flow for flow in flows) for kind in kinds)
    assert 0 < sum('"resultType": "error"' in flow for flow in flows) < SEEDS / 2
