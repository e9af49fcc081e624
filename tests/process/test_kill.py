"""kill -9 of the process that moves an execution: another one goes on, no effect is lost or doubled."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plaita import Flow
from plaita.node.registry import get_default_registry
from tests.support.fleet import Fleet, branches_of, lines_of, wait_until
from tests.support.outside import Append

KILLS = int(os.environ.get("PLAITA_KILLS", "10"))
SEED = int(os.environ.get("PLAITA_SEED", "20"))
NODES = 300
PLACES = random.Random(SEED).sample(range(5, NODES - 10), KILLS)
BRANCHES = ("a", "ab", "abc")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    get_default_registry().register(Append)
    fleet = Fleet(tmp_path_factory.mktemp("fleet"))
    fleet.runtime().close()
    for _ in range(2):
        fleet.start_worker()
    yield fleet
    fleet.stop()


@pytest.mark.parametrize("place", PLACES)
def test_another_process_goes_on_after_a_kill(fleet: Fleet, place: int, record_property: Any) -> None:
    names = BRANCHES[place % len(BRANCHES)]
    path = fleet.folder / f"effects-{place}"
    flow = Flow.model_validate(branches_of(names, NODES // len(names), path))
    with fleet.runtime() as runtime:
        execution = runtime.start(flow)
        seen = wait_until(lambda: len(found := lines_of(path)) >= place and found, f"{place} effects")
        killed_ns = fleet.kill(seen[-1].pid)
        at_kill = lines_of(path)
        fleet.start_worker()
        shape = wait_until(lambda: _ended(execution.inspect()), "the execution ends")
    assert len(at_kill) < NODES, "the kill came too late to interrupt anything"
    assert shape["status"] == "completed", shape
    _check_effects(path, killed_ns, seen[-1].pid, len(names))
    taken = next(line.at_ns for line in lines_of(path) if line.pid != seen[-1].pid)
    record_property("takeover ms", (taken - killed_ns) / 1e6)
    record_property("seed", SEED)


def _ended(shape: dict[str, Any]) -> dict[str, Any] | None:
    return shape if shape["status"] in ("completed", "error", "cancelled") else None


def _check_effects(path: Path, killed_ns: int, victim: int, branches: int) -> None:
    lines = lines_of(path)
    counts = Counter(line.key for line in lines)
    assert len(counts) == NODES
    doubled = [key for key, count in counts.items() if count > 1]
    assert len(doubled) <= branches, f"more doubled effects than calls in flight: {doubled}"
    assert all(counts[key] == 2 for key in doubled)
    for key in doubled:
        assert {line.pid for line in lines if line.key == key} >= {victim}
    assert all(line.at_ns <= killed_ns + 50_000_000 for line in lines if line.pid == victim)
