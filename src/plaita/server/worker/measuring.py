"""What a worker shows of itself and its store: ``/metrics`` and ``/health``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from plaita.backends.limits import Limits
from plaita.base.clock import Clock
from plaita.base.errors import Unavailable
from plaita.ports.backend import Backend
from plaita.ports.processes import Facts
from plaita.ports.queries import Counts
from plaita.server.worker.endpoint import Page
from plaita.telemetry import gauges as shown
from plaita.telemetry.exposition import Sample, exposition
from plaita.telemetry.gauges import Gauge
from plaita.telemetry.numbers import Reading

STORE_S: Final = 2.0
"""How long a look may wait for the store; then the store counts as away."""
JSON: Final = "application/json"


class Observed(Protocol):
    """What is shown of a worker. ``said_ms``: when it last said that it is there, 0 for never."""

    @property
    def facts(self) -> Facts: ...
    @property
    def said_ms(self) -> int: ...
    @property
    def is_listed(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of producers by their documented names, and their limits."""

    inbox: str
    group: str
    dead_max: int
    idle_min_ms: int
    attempts_max: int

    @classmethod
    def of(cls, limits: Limits, attempts_max: int) -> Streams:
        """Those of a store that was opened with these limits."""
        named = limits.streams
        return cls(named.keys()["inbox"], named.group, limits.dlq_max, limits.claim_min_idle_ms, attempts_max)


@dataclass(frozen=True, slots=True)
class Measures:
    """Both pages of one worker. ``readings`` are what its events counted, ``alerts`` what still waits to be posted."""

    worker: Observed
    store: Backend
    clock: Clock
    readings: Callable[[], list[Reading]]
    alerts: Callable[[], int]
    streams: Streams

    @property
    def pages(self) -> Mapping[str, Callable[[], Awaitable[Page]]]:
        """By path."""
        return {"/metrics": self.metrics, "/health": self.health}

    async def metrics(self) -> Page:
        """Counters of this process, and gauges of it and of the store, these only while the store answers."""
        found = await self._look()
        samples = [*self._of_worker(store_up=found is not None)]
        if found is not None:
            samples += self._of_store(*found)
        return Page(200, *exposition(self.readings(), samples))

    async def health(self) -> Page:
        """200 while the worker takes executions and its store answers, else 503; the body says which it is."""
        state = self.worker.facts.state
        if state == "running" and not await self._answers():
            status = "store unreachable"
        else:
            status = "ready" if state == "running" else state
        shape = {"status": status, "instance": self.worker.facts.instance, "store": self.store.name}
        return Page(200 if status == "ready" else 503, json.dumps(shape) + "\n", JSON)

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(STORE_S):
                await self.store.now_ms()
        except (Unavailable, TimeoutError):
            return False
        return True

    async def _look(self) -> tuple[Counts, int, int] | None:
        """Numbers of the store, its time, and how many workers live; ``None`` when it does not answer."""
        try:
            async with asyncio.timeout(STORE_S):
                return await self.store.counts(), await self.store.now_ms(), len(await self.store.living())
        except (Unavailable, TimeoutError):
            return None

    def _of_worker(self, *, store_up: bool) -> Iterator[Sample]:
        facts, streams = self.worker.facts, self.streams
        me, stream = {"instance": facts.instance}, self._stream
        values: list[tuple[Gauge, Mapping[str, str], float]] = [
            (shown.UP, me, facts.state == "running"),
            (shown.ACTIVE, me, facts.active),
            (shown.DRAINING, me, facts.state in ("draining", "stopping")),
            (shown.REGISTERED, me, self.worker.is_listed),
            (shown.HEARTBEAT, me, self.worker.said_ms / 1000),
            (shown.CAPACITY, me, facts.concurrency),
            (shown.CAPACITY_ACTIVE, me, facts.active),
            (shown.ALERTS_PENDING, {}, self.alerts()),
            (shown.STORE_UP, {}, store_up),
            (shown.DLQ_MAX, stream, streams.dead_max),
            (shown.DELIVERIES_MAX, stream, streams.attempts_max),
            (shown.IDLE_MIN, stream, streams.idle_min_ms),
        ]
        yield from values

    def _of_store(self, counts: Counts, now_ms: int, workers: int) -> Iterator[Sample]:
        stream = self._stream
        for status, number in counts.by_status.items():
            yield shown.RUNS, {"status": status}, number
        yield shown.RUNS_DUE, {}, counts.due
        yield shown.DUE_AGE, {}, _age_s(counts.due_since_ms, now_ms)
        yield shown.WORKERS, {}, workers
        yield shown.STREAM_LENGTH, stream, counts.inbox
        yield shown.PENDING, stream, counts.pending
        yield shown.INBOX_AGE, stream, _age_s(counts.inbox_since_ms, now_ms)
        yield shown.DLQ_LENGTH, stream, counts.dead_letters
        yield shown.DLQ_SATURATED, stream, counts.dead_letters >= self.streams.dead_max

    @property
    def _stream(self) -> Mapping[str, str]:
        return {"stream": self.streams.inbox, "group": self.streams.group}


def _age_s(since_ms: int | None, now_ms: int) -> float:
    return 0.0 if since_ms is None else max(0, now_ms - since_ms) / 1000
