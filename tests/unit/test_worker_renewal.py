"""The renewal of leases from its own thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from plaita.base.clock import SystemClock
from plaita.base.errors import Unavailable
from plaita.ports.runs import Lost, Renewed
from plaita.ports.values import RunId, Token
from plaita.server.worker.lease import Renewal, RenewalStore
from plaita.server.worker.pool import ThreadSpawner
from plaita.telemetry.sink import LogTelemetry

PERIOD_MS = 1_000
FAILURES = 3


class Flaky:
    """A store whose first connections break."""

    def __init__(self) -> None:
        self.asked_ms: list[float] = []

    async def renew(self, leases: Sequence[tuple[RunId, Token]]) -> list[Renewed | Lost]:
        self.asked_ms.append(SystemClock().elapsed_ms())
        if len(self.asked_ms) <= FAILURES:
            raise Unavailable("the connection broke")
        return [Renewed(False, (), 0, 10_000) for _ in leases]

    async def close(self) -> None:
        """Nothing to give back."""


class Held:
    def __init__(self) -> None:
        self.told = asyncio.Event()

    @property
    def lease_of(self) -> tuple[RunId, Token]:
        return RunId("r"), Token("h.n", 1, "i")

    def renewed(self, answer: Renewed | Lost, sent: float) -> None:
        self.told.set()


async def test_a_renewal_that_fails_is_tried_again_before_its_period_is_over() -> None:
    store, held = Flaky(), Held()
    opener = cast(Any, lambda: cast(RenewalStore, store))
    renewal = Renewal(cast(Any, store), opener, PERIOD_MS, SystemClock(), LogTelemetry(), "h")
    renewal.hold(held)
    renewal.start(ThreadSpawner(), asyncio.get_running_loop())
    await held.told.wait()
    renewal.stop()
    assert len(store.asked_ms) == FAILURES + 1
    assert store.asked_ms[-1] - store.asked_ms[0] < PERIOD_MS


class Stepping:
    """A clock that is ahead by what the test says, from one look to the next."""

    def __init__(self, *steps_ms: float) -> None:
        self._steps, self._now = list(steps_ms), 0.0

    def now_ms(self) -> int:
        return 0

    def elapsed_ms(self) -> float:
        self._now += self._steps.pop(0) if self._steps else 0
        return self._now


class Steady(Flaky):
    """A store that answers; ``enough`` is set after some renewals."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._left, self.enough = count, asyncio.Event()

    async def renew(self, leases: Sequence[tuple[RunId, Token]]) -> list[Renewed | Lost]:
        self._left -= 1
        if self._left <= 0:
            self.enough.set()
        return [Renewed(False, (), 0, 10_000) for _ in leases]


async def test_renewals_further_apart_than_two_periods_are_counted_as_late() -> None:
    # Each round looks at the clock when it sends and when it went well.
    clock, telemetry, store = Stepping(0, 0, 10, 0, 25, 0, 10, 0), LogTelemetry(), Steady(5)
    renewal = Renewal(cast(Any, store), None, 10, clock, telemetry, "h")
    renewal.hold(Held())
    task = renewal.start(ThreadSpawner(), asyncio.get_running_loop())
    await store.enough.wait()
    assert task is not None
    task.cancel()
    assert telemetry.numbers()["plaita_renewals_late"] == 1
