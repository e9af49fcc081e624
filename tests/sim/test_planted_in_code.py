"""Every planted bug of the protocol, planted in the shipped code, is caught."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from plaita.backends.memory import MemoryBackend
from plaita.testing.conformance import ChildContract, FilterContract, HandClock
from plaita.testing.conformance.stage import Stage
from plaita.testing.simulation.story import Verdict, play
from tests.sim.bugs import BUGS, CAUGHT, MET, NOT_PLANTED, Bug
from tests.sim.lockstep import Lockstep
from tests.sim.planting import planted
from tests.sim.protocol.scenarios import BUGS as NAMES
from tests.sim.test_model_agreement import STEPS, Walk

SEARCH = 60
"""So many worlds at most are played to find a bug whose pinned worlds show it no more."""
WALKS = 24
SEEDS = 60
"""So many worlds are played without a bug anyway."""


def rule_of(verdict: Verdict) -> str:
    """What was broken first."""
    first = verdict.violations[0] if verdict.violations else "nothing"
    return first.split(" ")[0] if re.match(r"[IRL]\d+ |raised ", first) else "audit"


def in_a_world(bug: Bug, folder: Path) -> bool:
    rule, seeds = CAUGHT[bug.name]
    pinned = (play(seed, folder=folder) for seed in seeds)
    return any(verdict.violations and rule_of(verdict) == rule for verdict in pinned) or any(
        play(seed, folder=folder).violations for seed in range(SEARCH)
    )


def in_lockstep(bug: Bug, folder: Path) -> bool:
    """Whether the stores leave the model's way on some walk."""
    seeds = dict.fromkeys([MET.get(bug.name, 0), *range(WALKS)])
    return any(walk(seed, folder / str(seed)) for seed in seeds)


def walk(seed: int, folder: Path) -> bool:
    folder.mkdir()
    stores = Lockstep(folder, cap=None, grace=0, tombstones=seed % 2 == 0)
    stepping = Walk(seed, stores)
    try:
        for _ in range(STEPS):
            stepping.step()
    except AssertionError:
        return True
    finally:
        stores.close()
    return False


def in_conformance(bug: Bug, folder: Path) -> bool:
    """Whether the contract fails that says so."""
    clock = HandClock()
    owner = next(owner for owner in (ChildContract(), FilterContract()) if hasattr(owner, bug.contract))
    contract = getattr(owner, bug.contract)
    try:
        asyncio.run(contract(Stage(MemoryBackend(clock), clock)))
    except (AssertionError, ValueError, LookupError):
        return True
    return False


@pytest.mark.timeout(180)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_planted_in_the_shipped_code_is_caught(bug: Bug, tmp_path: Path) -> None:
    catch = {"world": in_a_world, "lockstep": in_lockstep, "conformance": in_conformance}[bug.by]
    with planted(bug.edits):
        assert catch(bug, tmp_path)


@pytest.mark.parametrize("seed", sorted({seed for _, seeds in CAUGHT.values() for seed in seeds} - set(range(SEEDS))))
def test_without_its_bug_a_world_keeps_every_rule(seed: int) -> None:
    assert not play(seed).violations


def test_every_bug_of_the_model_is_planted_or_has_a_reason_why_not() -> None:
    names = {bug.name for bug in BUGS}
    assert names | NOT_PLANTED.keys() == set(NAMES)
    assert not names & NOT_PLANTED.keys()
    assert {bug.name for bug in BUGS if bug.by == "world"} == CAUGHT.keys()
