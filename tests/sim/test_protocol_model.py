"""The model keeps its invariants in every small world, and every planted bug is caught in one."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sim.protocol.explore import explore, walk
from tests.sim.protocol.scenarios import SCENARIOS
from tests.sim.protocol.store import BUG

SEEDS = 2
STATES_MAX = 2_500


@pytest.fixture(autouse=True)
def without_bugs() -> Iterator[None]:
    yield
    BUG.clear()


@pytest.mark.parametrize("name", SCENARIOS)
def test_seeded_walks_keep_every_invariant(name: str) -> None:
    for seed in range(SEEDS):
        found: dict[str, Any] = walk(SCENARIOS[name], seed)
        assert not found["bad"], "\n".join([*found["bad"], *found["trace"]])


@pytest.mark.parametrize("name", ["conflict", "retries", "early", "childtomb", "inbox", "elapse", "elapsefilter"])
def test_the_first_states_of_a_world_keep_every_invariant(name: str) -> None:
    found: dict[str, Any] = explore(SCENARIOS[name], limit=STATES_MAX)
    assert not found["bad"], "\n".join([*found["bad"], *found["trace"]])
