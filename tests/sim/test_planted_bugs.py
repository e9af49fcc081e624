"""Every planted bug of the model is caught in the smallest world that shows it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sim.protocol.explore import explore
from tests.sim.protocol.scenarios import BUGS, SCENARIOS
from tests.sim.protocol.store import BUG

FIRST_LOOK = 25_000
"""States explored without the fair schedule first: most bugs break a rule before they stop anything."""
SLOW = frozenset({"key_without_incarnation", "close_ignores_log"})


@pytest.fixture(autouse=True)
def without_bugs() -> Iterator[None]:
    yield
    BUG.clear()


def caught(name: str) -> bool:
    BUG.update(name.split("+"))
    for live in (False, True):
        for world in BUGS[name]:
            found: dict[str, Any] = explore(SCENARIOS[world], limit=FIRST_LOOK * (1 + 9 * live), live=live)
            if found["bad"]:
                return True
    return False


@pytest.mark.parametrize("name", [name for name in BUGS if name not in SLOW])
def test_a_planted_bug_is_caught(name: str) -> None:
    assert caught(name)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(SLOW))
def test_a_bug_that_takes_many_states_is_caught(name: str) -> None:
    assert caught(name)
