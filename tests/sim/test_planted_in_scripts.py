"""Every planted bug of the protocol that a function of Redis can have, planted there, is caught."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from plaita.backends.redis import RedisBackend
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.stage import Stage
from plaita.testing.simulation.story import play
from tests.sim.lockstep import Lockstep
from tests.sim.protocol.scenarios import BUGS as NAMES
from tests.sim.script_bugs import (
    CONTRACTS,
    CROWDS,
    NOT_IN_SCRIPTS,
    SCRIPT_BUGS,
    WALKS,
    WORLDS,
    ScriptBug,
    planted_in_script,
)
from tests.sim.test_model_agreement import Crowd, Walk, go


def walk(name: str, folder: Path, url: str) -> None:
    """Answers and contents of Redis are compared with those of the model after every step."""
    if name in CROWDS:
        go(Crowd(CROWDS[name], Lockstep(folder, cap=None, grace=0, tombstones=True, redis_url=url)))
        return
    cap, grace, tombstones, seed = WALKS[name]
    go(Walk(seed, Lockstep(folder, cap=cap, grace=grace, tombstones=tombstones, redis_url=url)))


def keep_contract(name: str, url: str) -> None:
    contract, test, parameters = CONTRACTS[name]

    async def keep() -> None:
        clock = HandClock()
        store = RedisBackend(url, clock)
        try:
            await getattr(contract(), test)(Stage(store, clock), *parameters)
        finally:
            await store.close()

    asyncio.run(keep())


@pytest.mark.timeout(60)
@pytest.mark.parametrize("bug", SCRIPT_BUGS, ids=lambda bug: bug.name)
def test_a_bug_planted_in_a_function_is_caught(bug: ScriptBug, tmp_path: Path, redis_url: str) -> None:
    with planted_in_script(bug):
        if bug.name in WORLDS:
            assert play(WORLDS[bug.name], "redis", url=redis_url).violations
            return
        # Whatever it is that goes wrong, an answer, a number that is missing or a step that breaks off.
        with pytest.raises((AssertionError, LookupError, TypeError, RuntimeError, ValueError)):
            if bug.name in WALKS or bug.name in CROWDS:
                walk(bug.name, tmp_path, redis_url)
            else:
                keep_contract(bug.name, redis_url)


@pytest.mark.parametrize("name", CONTRACTS)
def test_the_shipped_functions_keep_the_contracts_that_catch(name: str, redis_url: str) -> None:
    keep_contract(name, redis_url)


@pytest.mark.parametrize("name", ["close_no_cas", "gen_dies_with_row", "close_ignores_log", *CROWDS])
def test_the_shipped_functions_go_the_walks_that_catch(name: str, tmp_path: Path, redis_url: str) -> None:
    walk(name, tmp_path, redis_url)


def test_every_bug_of_the_model_is_planted_or_has_a_reason_why_not() -> None:
    planted = {bug.name for bug in SCRIPT_BUGS}
    assert planted == WALKS.keys() | CROWDS.keys() | WORLDS.keys() | CONTRACTS.keys()
    assert set(NAMES) <= planted | NOT_IN_SCRIPTS.keys()
