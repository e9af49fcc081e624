"""Every planted bug of the model is caught in the smallest world that shows it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sim.protocol.explore import explore
from tests.sim.protocol.scenarios import BUGS, SCENARIOS
from tests.sim.protocol.store import BUG

pytestmark = pytest.mark.timeout(300)

FIRST_LOOK = 25_000
"""States explored without the fair schedule first: most bugs break a rule before they stop anything."""


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


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name: str) -> None:
    assert caught(name)
