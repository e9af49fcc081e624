"""Who is alive: processes that drive runs announce what they would take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from plaita.ports.values import RunId

State = Literal["starting", "running", "draining", "stopping", "stopped"]
Setup: TypeAlias = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a process says of itself for people. ``setup`` is what it works under, by name: processes of one store
    should agree on it. ``listed``: it is shown in the documented registry, where there is one. ``beat_ms``: when it
    said so."""

    instance: str = ""
    host: str = ""
    state: State = "running"
    concurrency: int = 0
    active: int = 0
    version: str = ""
    listed: bool = False
    beat_ms: int = 0
    setup: Setup = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Process:
    """A live process. ``holder`` prefixes the nonces of its claims; ``only`` binds it to one run and its children."""

    holder: str
    pid: int
    queues: tuple[str, ...]
    only: RunId | None
    imports: tuple[str, ...]
    started_ms: int
    facts: Facts = field(default_factory=Facts)


class ProcessRegistry(Protocol):
    """Liveness is proved by something that dies with the process (a file lock), never by a heartbeat row alone."""

    async def announce(self, process: Process) -> bool:
        """Register this process and take its liveness lock; said again, what it says of itself is renewed.

        False when an earlier announcement is there no more: the store was emptied, or put back to an older state.
        """

    async def withdraw(self, holder: str) -> None:
        """Leave in order."""

    async def living(self) -> list[Process]:
        """Processes that are alive now, this one included."""

    async def bury_dead(self) -> int:
        """Release the leases of processes that died without leaving; answers how many processes."""
