"""Every planted bug of the model is caught in the smallest world that shows it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sim.protocol.explore import explore, walk
from tests.sim.protocol.scenarios import BUGS, SCENARIOS
from tests.sim.protocol.store import BUG

pytestmark = pytest.mark.timeout(300)

LOOKS = ((1_000, True), (25_000, False), (250_000, True))
"""How many states are explored, and whether a fair schedule is tried from each, which costs ten times as much.

Most bugs break a rule before they stop anything; what stops something does it soon.
"""

WALKED = {
    "close_ignores_log": ("timeout", 81),
    "dead_letter_of_live": ("inbox", 14),
    "fanout_cursor_lost": ("fanout", 93),
}
"""World and seed of a walk that meets a bug which lies deep."""


@pytest.fixture(autouse=True)
def without_bugs() -> Iterator[None]:
    yield
    BUG.clear()


def caught(name: str) -> bool:
    BUG.update(name.split("+"))
    if name in WALKED:
        world, seed = WALKED[name]
        return bool(walk(SCENARIOS[world], seed)["bad"])
    for limit, live in LOOKS:
        for world in BUGS[name]:
            found: dict[str, Any] = explore(SCENARIOS[world], limit=limit, live=live)
            if found["bad"]:
                return True
    return False


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name: str) -> None:
    assert caught(name)
