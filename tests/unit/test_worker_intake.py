"""The intake of a worker: it asks ahead, and loses nothing when it stops."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any, cast

import pytest

from plaita import Flow
from plaita.backends.memory import MemoryBackend
from plaita.base.clock import SystemClock
from plaita.base.errors import Unavailable
from plaita.control.starting import StartOptions, start_flow
from plaita.ports.runs import Claim
from plaita.server.worker import Worker, WorkerOptions
from plaita.server.worker.attempt import Deps
from plaita.server.worker.intake import CLAIM_MAX, FEW, Intake
from plaita.telemetry.sink import LogTelemetry
from tests.support.flows import chain

CONCURRENCY = 100


class Store:
    """Answers claims from so many runs, and says in which order things were asked and begun."""

    name = "memory"

    def __init__(self, due: int) -> None:
        self.due, self.told, self.asked = due, [], asyncio.Event()  # type: ignore[var-annotated]

    async def accept(self, n: int) -> list[Any]:
        return []

    async def claim(self, nonce: str, n: int, **_: Any) -> list[Claim]:
        self.told.append(("ask", n))
        given = min(n, self.due)
        self.due -= given
        return [cast(Claim, f"run {i}") for i in range(given)]

    async def hint(self, timeout_ms: int) -> None:
        self.asked.set()
        await asyncio.Event().wait()


class Away(Store):
    """Does not answer the first claims."""

    def __init__(self, times: int) -> None:
        super().__init__(1)
        self._times = times

    async def claim(self, nonce: str, n: int, **_: Any) -> list[Claim]:
        self._times -= 1
        if self._times >= 0:
            raise Unavailable("away")
        return await super().claim(nonce, n)


class Taker:
    def __init__(self, store: Store, running: int = 0) -> None:
        self._told, self.running = store.told, running
        self.lacks: dict[str, str] = {}

    @property
    def room(self) -> int:
        return CONCURRENCY - self.running

    async def start(self, claim: Claim, sent: float) -> None:
        self.running += 1
        self._told.append(("start", claim))

    async def give_back(self, claim: Claim) -> None:
        raise AssertionError("nothing is left when it stops")

    async def look(self) -> None:
        """No mail."""


class Stopping(Taker):
    """Is told to stop as it begins its first run, and has no store any more to give the others back to."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.stop = asyncio.Event()

    async def start(self, claim: Claim, sent: float) -> None:
        await super().start(claim, sent)
        self.stop.set()

    async def give_back(self, claim: Claim) -> None:
        self._told.append(("give back", claim))
        raise Unavailable("away")


def intake_of(store: Store, taker: Taker, telemetry: LogTelemetry) -> Intake:
    deps = Deps(cast(Any, store), cast(Any, None), SystemClock(), telemetry, {}, "h")
    return Intake(deps, taker, WorkerOptions(concurrency=CONCURRENCY, poll_ms=60_000))


async def taking(store: Store, taker: Taker) -> list[Any]:
    """What was asked and begun until nothing is due."""
    intake, stop = intake_of(store, taker, LogTelemetry()), asyncio.Event()
    working = asyncio.create_task(intake.run(stop))
    await store.asked.wait()
    stop.set()
    await working
    return store.told


async def test_the_next_claim_is_asked_for_before_the_runs_of_the_last_are_begun() -> None:
    store = Store(CLAIM_MAX + 1)
    told = await taking(store, Taker(store))
    assert told[:3] == [("ask", CLAIM_MAX), ("ask", CLAIM_MAX), ("start", "run 0")]
    assert sum(what == "start" for what, _ in told) == CLAIM_MAX + 1


async def test_room_for_a_few_is_not_asked_for_ahead_but_is_used() -> None:
    store = Store(5)
    told = await taking(store, Taker(store, running=CONCURRENCY - FEW + 1))
    assert told[0] == ("ask", FEW - 1)
    assert [what for what, _ in told[1:6]] == ["start"] * 5


async def test_a_store_that_is_away_when_the_worker_stops_holds_nobody_up() -> None:
    store, telemetry = Store(CLAIM_MAX + 2), LogTelemetry()
    taker = Stopping(store)
    await intake_of(store, taker, telemetry).run(taker.stop)
    told = [what for what, _ in store.told]
    assert told == ["ask", "ask", "start"] + ["give back"] * (CLAIM_MAX + 1)
    assert telemetry.numbers()["plaita_store_unavailable"] == CLAIM_MAX + 1


async def test_the_end_of_an_outage_is_told_once_with_its_length(caplog: pytest.LogCaptureFixture) -> None:
    store = Away(2)
    with caplog.at_level(logging.INFO, "plaita"):
        await taking(store, Taker(store))
    away, back = caplog.records
    assert away.getMessage().startswith("store_unavailable store=memory verb=claim")
    assert re.fullmatch(r"store_back store=memory seconds=\d+\.\d", back.getMessage())


async def test_runs_that_were_claimed_ahead_are_given_back_when_the_worker_stops() -> None:
    store, count = MemoryBackend(), 3 * CLAIM_MAX
    flow = Flow.model_validate(chain())
    for i in range(count):
        await start_flow(store, flow, {}, StartOptions(execution_id=f"r{i}"))
    worker, stop = Worker(store, WorkerOptions(concurrency=CONCURRENCY)), asyncio.Event()
    working = asyncio.create_task(worker.run(stop))
    await worker.changed(60_000)
    stop.set()
    await working
    ended, _ = await store.runs(status="completed", limit=count)
    # Whoever holds others already takes them too: nobody was lost over them.
    left = await store.claim("another.0", count)
    assert left
    assert len(ended) + len(left) == count
    assert not [claim for claim in left if claim.takeover]


class FullStore(Store):
    """While it carries on for a worker that has no room, the last run of that worker is given back."""

    def __init__(self) -> None:
        super().__init__(due=2)
        self.meanwhile: Callable[[], None] = lambda: None

    async def carry_on(self) -> int:
        self.told.append(("carry on", None))
        self.meanwhile()
        return 0


async def test_room_that_comes_while_a_full_worker_looks_around_is_used_at_once() -> None:
    store = FullStore()
    taker = Taker(store, running=CONCURRENCY - 1)
    deps = Deps(cast(Any, store), cast(Any, None), SystemClock(), LogTelemetry(), {}, "h")
    intake = Intake(deps, taker, WorkerOptions(concurrency=CONCURRENCY, poll_ms=60_000))

    def one_ends() -> None:
        taker.running -= 1
        intake.freed()
        if not store.due:
            stop.set()

    stop, store.meanwhile = asyncio.Event(), one_ends
    await intake.run(stop)
    assert [what for what, _ in store.told] == ["ask", "start", "carry on"] * 2
