"""How long whoever waits for an execution stays: through what passes by itself, to what somebody must answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from plaita import Flow, Runtime
from plaita.backends.memory import MemoryBackend
from plaita.control.looking import goes_on_by_itself, rests, run_of
from plaita.ports.queries import RunView
from plaita.ports.runs import Arm, Park
from plaita.ports.values import RunId
from plaita.runtime.driving import follow_through, go_on
from plaita.testing.conformance.stage import WAIT, HandClock, Stage, hand

NOW = 1_000_000
RUN = RunView(
    RunId("r"), "inc", "f", "1", "closure", "suspended", "default", "default", "", (), 0, (), NOW - 9_000, None, None,
    NOW + 500, None, "", None, None, None, 3, 0, 0, False, False, None,
)  # fmt: skip
START = {"id": "s", "type": "start", "next": "a"}
END = {"id": "e", "type": "end", "output": "over"}


def ring(node_id: str, following: str) -> dict[str, Any]:
    return {"id": node_id, "type": "event", "event_type": node_id, "next": following}


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    async with await Runtime.aopen("memory:") as opened:
        yield opened


def test_a_timer_ahead_is_a_rest_but_not_of_one_that_was_set_back_for_want_of_a_process() -> None:
    assert rests(RUN, NOW)
    assert not rests(replace(RUN, blocked_reason="a worker could not load it"), NOW)
    assert rests(replace(RUN, blocked_reason="another request", due_ms=None), NOW)


@pytest.mark.parametrize("seconds", [None, 15])
async def test_a_delay_is_driven_through(runtime: Runtime, seconds: float | None) -> None:
    nap = {"id": "a", "type": "delay", "delay_seconds": 0.2, "next": "e"}
    run = await runtime.astart(Flow(nodes=[START, nap, END]))
    assert (await run.await_(seconds))["output"] == "over"


async def test_the_time_of_waiting_bounds_a_delay(runtime: Runtime) -> None:
    nap = {"id": "a", "type": "delay", "delay_seconds": 600, "next": "e"}
    run = await runtime.astart(Flow(nodes=[START, nap, END]))
    assert (await run.await_(0.1))["waits"][0]["kind"] == "delay"


async def test_a_rest_that_came_after_another_between_two_looks_is_asked_about_too(runtime: Runtime) -> None:
    run = await runtime.astart(Flow(nodes=[START, ring("a", "b"), ring("b", "e"), END]))
    asked: list[str] = []

    async def stays(view: RunView) -> bool:
        [wait] = await runtime.store.waits(view.run_id)
        asked.append(wait.address)
        if wait.address == "a":
            await runtime.store.publish("one", "a", None, b"1")
            await go_on(runtime.store, view.run_id, runtime.how)
        return wait.address == "a"

    await follow_through(runtime.store, run.id, runtime.how, stays)
    assert asked == ["a", "b"]


ANSWERED = [
    pytest.param((hand("w"),), id="nothing_left_open"),
    pytest.param((hand("w"), hand("other")), id="another_is_open"),
]


@pytest.mark.parametrize("arms", ANSWERED)
async def test_one_that_was_answered_and_waits_for_a_slot_goes_on_by_itself(arms: tuple[Arm, ...]) -> None:
    clock = HandClock()
    stage = Stage(MemoryBackend(clock, cap=1), clock)
    await stage.settle(await stage.hold("waits"), Park(None), arms=arms)
    assert not await goes_on_by_itself(stage.backend, await run_of(stage.backend, "waits"))
    await stage.hold("takes the slot")
    await stage.backend.wake(RunId("waits"), WAIT, b"1")
    view = await run_of(stage.backend, "waits")
    assert (view.status, view.due_ms) == ("suspended", None)
    assert await goes_on_by_itself(stage.backend, view)
