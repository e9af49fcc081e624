"""The same worlds on a real Redis: its functions under seeded schedules, with the world's time.

``PLAITA_SIM_REDIS_SEEDS`` (a number, or ``from:to``) makes the search longer; ``make sim SEED=n`` shows the world of a
seed on the other stores.
"""

from __future__ import annotations

import os

import pytest

from plaita.testing.simulation.story import play

SEEDS = "3"


def seeds() -> range:
    first, _, last = os.environ.get("PLAITA_SIM_REDIS_SEEDS", SEEDS).rpartition(":")  # noqa: TID251 - how long
    return range(int(first or 0), int(last))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", seeds())
def test_no_world_on_redis_breaks_a_rule(seed: int, redis_url: str) -> None:
    verdict = play(seed, "redis", url=redis_url)
    assert not verdict.violations, verdict.report
