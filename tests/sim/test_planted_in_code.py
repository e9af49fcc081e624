"""Every planted bug of the protocol, planted in the shipped code, is caught."""

from __future__ import annotations

from pathlib import Path

import pytest

from plaita.testing.simulation.story import play
from tests.sim.bugs import BUGS, NOT_PLANTED, Bug
from tests.sim.lockstep import Lockstep
from tests.sim.planting import planted
from tests.sim.protocol.scenarios import BUGS as NAMES
from tests.sim.test_model_agreement import STEPS, Walk

SEARCH = 60
"""So many worlds at most are played to find a bug whose pinned worlds show it no more."""
WALKS = 12


def in_a_world(bug: Bug, folder: Path) -> bool:
    seeds = [*bug.seeds, *(seed for seed in range(SEARCH) if seed not in bug.seeds)]
    return any(play(seed, folder=folder).violations for seed in seeds)


def in_lockstep(bug: Bug, folder: Path) -> bool:
    return any(walk(bug.seeds, seed, folder) for seed in (*bug.seeds, *range(WALKS)))


def walk(pinned: tuple[int, ...], seed: int, folder: Path) -> bool:
    """Whether the stores leave the model's way on this walk."""
    place = folder / str(seed)
    place.mkdir(exist_ok=True)
    (place / "lockstep.db").unlink(missing_ok=True)
    stores = Lockstep(place, cap=None, grace=0, tombstones=seed % 2 == 0)
    stepping = Walk(seed, stores)
    try:
        for _ in range(STEPS):
            stepping.step()
    except (AssertionError, ValueError, KeyError):
        return True
    finally:
        stores.close()
    return False


@pytest.mark.timeout(180)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_planted_in_the_shipped_code_is_caught(bug: Bug, tmp_path: Path) -> None:
    caught = in_lockstep if bug.by == "lockstep" else in_a_world
    with planted(bug.edits):
        assert caught(bug, tmp_path)


def test_every_bug_of_the_model_is_planted_or_has_a_reason_why_not() -> None:
    planted_names = {bug.name for bug in BUGS}
    assert planted_names | NOT_PLANTED.keys() == set(NAMES)
    assert not planted_names & NOT_PLANTED.keys()
