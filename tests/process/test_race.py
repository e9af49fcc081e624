"""An answer against its deadline, again and again: one winner each time, and the loser is told."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from plaita import Flow
from plaita.runtime import Runtime
from tests.support.fleet import Fleet, command, wait_until

RACES = int(os.environ.get("PLAITA_RACES", "24"))
SEED = int(os.environ.get("PLAITA_SEED", "20"))
AT_ONCE = 4
SPREAD_S = 0.1
LEAST_WAIT_S = 0.8


class Aim:
    """How long before the deadline a command is started: later after a win, earlier after a defeat, so that both
    sides win whatever the speed of the machine."""

    def __init__(self, lead_s: float) -> None:
        self.lead_s = lead_s

    @property
    def wait_s(self) -> float:
        """How long a wait must be for the command to start within it."""
        return max(LEAST_WAIT_S, self.lead_s + 3 * SPREAD_S)

    def learn(self, won: str) -> None:
        self.lead_s = max(self.lead_s + (-0.1 if won == "completed" else 0.15), 0.0)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path)
    fleet.runtime().close()
    fleet.start_worker()
    yield fleet
    fleet.stop()


@pytest.mark.timeout(300)
def test_an_answer_and_a_deadline_have_one_winner_and_the_loser_is_told(fleet: Fleet, record_property: Any) -> None:
    flow = Flow.model_validate(
        {
            "flow_id": "race",
            "nodes": [
                {"type": "start", "id": "s", "next": "w"},
                {"type": "event", "id": "w", "event_type": "go", "subscription_timeout": "$INPUT.limit", "next": "e"},
                {"type": "end", "id": "e", "output": "$NODE.w.status"},
            ],
        }
    )
    dice = random.Random(SEED)
    offsets = [dice.uniform(-SPREAD_S, SPREAD_S) for _ in range(RACES)]
    took_s(fleet)  # The first one finds less prepared than those that follow.
    with fleet.runtime() as runtime, ThreadPoolExecutor(AT_ONCE) as threads:
        aim = Aim(max(threads.map(lambda _: took_s(fleet), range(AT_ONCE))))
        won = Counter(threads.map(lambda offset: race(fleet, runtime, flow, aim, offset), offsets))
    record_property("races won by the answer", won["completed"])
    record_property("races won by the deadline", won["timeout"])
    record_property("seed", SEED)
    assert min(won["completed"], won["timeout"]) >= RACES / 10, won


def took_s(fleet: Fleet) -> float:
    """How long a command takes here, with others beside it."""
    began = time.monotonic()
    assert command(fleet, "ps").code == 0
    return time.monotonic() - began


def race(fleet: Fleet, runtime: Runtime, flow: Flow, aim: Aim, offset_s: float) -> str:
    """Let a command answer a wait about when its deadline comes; who won, as the execution saw it."""
    lead_s, limit = aim.lead_s, aim.wait_s
    execution = runtime.start(flow, {"limit": limit})
    shape = wait_until(lambda: _waits(execution.inspect()), "the wait")
    moment = _seconds(shape["waits"][0]["deadline"]) - lead_s + offset_s
    wait_until(lambda: time.time() >= moment, "the moment")
    answer = command(fleet, "resume", execution.id, "--wait", "w", "--data", "{}")
    assert (answer.code == 0) == (answer.err.count("error") == 0), answer
    told = "completed" if answer.code == 0 else "timeout"
    aim.learn(told)
    shape = wait_until(lambda: _over(execution.inspect()), "the end")
    assert shape["output"] == told, "who was told 'woken' is read, who was refused is not"
    return told


def _waits(shape: dict[str, Any]) -> dict[str, Any] | None:
    return shape if shape["waits"] else None


def _over(shape: dict[str, Any]) -> dict[str, Any] | None:
    return shape if shape["status"] == "completed" else None


def _seconds(iso: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(iso).timestamp()
