"""How a worker behaves, and what it stands in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from plaita.base.clock import Clock, SystemClock
from plaita.core.callback import FlowCallback
from plaita.policy.retry import ATTEMPTS_MAX
from plaita.ports.processes import Facts
from plaita.ports.values import RunId
from plaita.server.worker.changed import DefinitionChange
from plaita.server.worker.definitions import Definitions
from plaita.server.worker.pool import Spawner, ThreadSpawner
from plaita.server.worker.timeline import Observer
from plaita.telemetry.sink import LogTelemetry, Telemetry


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker behaves. ``only`` binds it to one run and its children; ``env`` is what ``$ENV`` may read of.

    ``retention_ms``: ended runs older than that are removed, ``None`` removes nothing. ``holder``: the name under which
    it claims, a new one when empty. ``facts``: what it says of itself; with an ``instance`` it says so every
    ``beat_ms`` and obeys commands for that name.
    """

    concurrency: int = 100
    pool_size: int = 32
    queues: tuple[str, ...] = ("default",)
    only: RunId | None = None
    imports: tuple[str, ...] = ()
    renew_ms: int = 3_000
    poll_ms: int = 1_000
    drain_ms: int = 30_000
    timezone: str | None = None
    active_ms_max: int = 1_800_000
    attempts_max: int = ATTEMPTS_MAX
    definition_change: DefinitionChange = "pinned"
    retention_ms: int | None = None
    holder: str = ""
    facts: Facts = field(default_factory=Facts)
    beat_ms: int = 10_000
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a worker stands in: clock, threads, who is told. Replaced as a whole by simulations.

    ``callbacks`` are told of flows and nodes after each settle, at least once. ``definitions`` are shared with other
    workers of the process; without, a worker has its own. ``ready`` is called once the worker takes runs.
    """

    clock: Clock = field(default_factory=SystemClock)
    telemetry: Telemetry = field(default_factory=LogTelemetry)
    spawner: Spawner = field(default_factory=ThreadSpawner)
    observer: Observer | None = None
    callbacks: Sequence[FlowCallback] = ()
    definitions: Definitions | None = None
    ready: Callable[[], None] | None = None
