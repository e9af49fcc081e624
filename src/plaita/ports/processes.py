"""Who is alive: processes that drive runs announce what they would take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from plaita.ports.values import RunId


@dataclass(frozen=True, slots=True)
class Process:
    """A live process. ``holder`` prefixes the nonces of its claims; ``only`` binds it to one run and its children."""

    holder: str
    pid: int
    queues: tuple[str, ...]
    only: RunId | None
    imports: tuple[str, ...]
    started_ms: int


class ProcessRegistry(Protocol):
    """Liveness is proved by something that dies with the process (a file lock), never by a heartbeat row alone."""

    async def announce(self, process: Process) -> None:
        """Register this process and take its liveness lock."""

    async def withdraw(self, holder: str) -> None:
        """Leave in order."""

    async def living(self) -> list[Process]:
        """Processes that are alive now, this one included."""

    async def bury_dead(self) -> int:
        """Release the leases of processes that died without leaving; answers how many processes."""
