"""Reading: what operators look at. Reads take no claim and change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from plaita.ports.values import By, RunId, Status, Token, WaitId


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as people see it; times are ms since 1970, ``output`` and ``error`` JSON bytes."""

    run_id: RunId
    incarnation: str
    flow_id: str
    flow_version: str
    closure: str
    status: Status
    queue: str
    tenant: str
    business_key: str
    tags: tuple[str, ...]
    priority: int
    imports: tuple[str, ...]
    submitted_ms: int
    ended_ms: int | None
    not_before_ms: int | None
    due_ms: int | None
    retry_ms: int | None
    blocked_reason: str
    output: bytes | None
    error: bytes | None
    token: Token | None
    seq: int
    tries: int
    lost: int
    cancel: bool
    slot: bool
    parent: RunId | None


@dataclass(frozen=True, slots=True)
class WaitView:
    wait_id: WaitId
    kind: str
    node_id: str
    address: str
    event_type: str
    key: str | None
    state: str
    since_ms: int
    deadline_ms: int | None
    by: By | None
    task_id: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One history entry: ``seq`` strictly grows in a run; ``data`` is JSON bytes."""

    seq: int
    at_ms: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Counts:
    """What is there and what waits, as numbers.

    ``by_status``: runs, every status named. ``due``: runs with something to do now that nobody holds, ``due_since_ms``
    since when the oldest of them has. ``inbox``: messages of producers that are not accepted yet, ``pending`` those of
    them that a process took; ``inbox_since_ms`` when the oldest came. ``dead_letters`` are kept for people.
    """

    by_status: Mapping[Status, int]
    due: int
    due_since_ms: int | None
    inbox: int
    pending: int
    inbox_since_ms: int | None
    dead_letters: int


class QueryStore(Protocol):
    """Cursors are opaque; an empty one means the first or no further page."""

    async def run(self, run_id: RunId) -> RunView | None:
        """One run."""

    async def input(self, run_id: RunId) -> bytes | None:
        """What a run was started with, JSON bytes."""

    async def runs(
        self, *, status: str = "", flow_id: str = "", business_key: str = "", tag: str = "", tenant: str = "",
        limit: int = 100, cursor: str = "", oldest_first: bool = False,
    ) -> tuple[list[RunView], str]:  # fmt: skip
        """Runs, newest first unless asked otherwise; a cursor is of the order it was given in."""

    async def waits(self, run_id: RunId, *, open_only: bool = True) -> list[WaitView]:
        """Waits of a run in the order they were armed."""

    async def history(self, run_id: RunId, *, after: int = 0, limit: int = 1000) -> list[Entry]:
        """History entries with a larger ``seq``."""

    async def counts(self) -> Counts:
        """How much there is; cheap enough to be asked every few seconds."""

    async def now_ms(self) -> int:
        """The store's clock."""

    async def audit(self) -> list[str]:
        """Recompute due, slots, wait indexes and queue from the headers; every difference in words, none is good."""
