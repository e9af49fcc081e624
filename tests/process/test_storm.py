"""A fleet under a load and a random fault every moment: every execution completes, and what was doubled is explained.

``PLAITA_STORM_RUNS`` executions begin over ``PLAITA_STORM_SECONDS``, with a fault every ``PLAITA_STORM_EVERY`` seconds
from ``PLAITA_SEED``.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from plaita import Flow
from plaita.base.errors import Unavailable
from plaita.node.registry import get_default_registry
from plaita.runtime import Runtime
from plaita.runtime.runtime import Execution
from tests.servers import redis_at
from tests.support.fleet import chain_of, wait_until
from tests.support.outside import Append
from tests.support.redis_fleet import KEPT, effects, fleet_on, histories_are_single
from tests.support.storm import Storm

RUNS = int(os.environ.get("PLAITA_STORM_RUNS", "400"))
SECONDS = float(os.environ.get("PLAITA_STORM_SECONDS", "8"))
EVERY_S = float(os.environ.get("PLAITA_STORM_EVERY", "0.7"))
SEED = int(os.environ.get("PLAITA_SEED", "20"))
WORKERS, AT_ONCE, NODES = 3, 16, 2
PATIENCE_S = 60 + 10 * SECONDS

pytestmark = pytest.mark.timeout(int(2 * PATIENCE_S))


def produce(runtime: Runtime, folder: Path) -> list[Execution]:
    """Start them over the time; a start that nobody answered is made again under its id."""
    get_default_registry().register(Append)
    shape = chain_of(NODES, folder / "effects")
    for node in shape["nodes"][1:-1]:
        node["seconds"] = 0.02
    flow = Flow.model_validate({"flow_id": "storm", **shape})
    begun, found = time.monotonic(), []
    for number in range(RUNS):
        due = begun + SECONDS * number / RUNS
        wait_until(lambda due=due: time.monotonic() >= due, "its time", SECONDS + 1)
        found.append(wait_until(lambda number=number: started(runtime, flow, f"run{number}"), "it starts", PATIENCE_S))
    return found


def started(runtime: Runtime, flow: Flow, name: str) -> Execution | None:
    try:
        return runtime.start(flow, execution_id=name)
    except Unavailable:
        return None


def completed(storm: Storm) -> bool:
    storm.look()
    try:
        return storm.runtime.ask(lambda store: store.counts()).by_status["completed"] == RUNS
    except Unavailable:
        return False


def taken_from(execution: Execution) -> list[str]:
    """The processes from which it was taken."""
    claims = [entry for entry in execution.history() if entry["event"] == "claimed"]
    return [before["holder"] for before, claim in pairwise(claims) if claim.get("takeover")]


def test_a_fleet_in_a_storm_completes_everything_and_only_repeats_what_was_under_way(tmp_path: Path) -> None:
    # A server that answers before it has written (everysec) may forget what it said when it is killed.
    with redis_at(*KEPT) as server, fleet_on(server, tmp_path, WORKERS, AT_ONCE) as fleet, fleet.runtime() as runtime:
        # Shown when it fails.
        logging.getLogger("storm").warning("PLAITA_SEED=%d", SEED)
        storm = Storm(server, fleet, runtime, random.Random(SEED))
        with ThreadPoolExecutor(1) as pool:
            producing = pool.submit(produce, runtime, tmp_path)
            ends = time.monotonic() + SECONDS
            while time.monotonic() < ends:
                following = time.monotonic() + EVERY_S
                storm.strike()
                while time.monotonic() < following:
                    storm.look()
            storm.end()
            executions = producing.result()
        wait_until(lambda: completed(storm), "every execution completes", PATIENCE_S)
        histories_are_single(executions)
        assert runtime.ask(lambda store: store.audit()) == []
        taken = {holder for execution in executions for holder in taken_from(execution)}
    lines = effects(tmp_path)
    times = Counter(line.key for line in lines)
    again = [key for key, count in times.items() if count > 1]
    # Who was killed had the effect before; who was stopped in the middle of it has it late, when it goes on.
    explained = {line.key for line in lines if line.pid in storm.struck}
    assert len(times) == RUNS * NODES
    assert {storm.holders[holder] for holder in taken} <= storm.struck, "taken from a process that lived"
    assert set(again) <= explained, "repeated although its process lived"
    assert len(again) <= len(storm.struck) * AT_ONCE
    assert storm.struck, "nobody was hit"
