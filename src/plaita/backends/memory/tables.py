"""The tables of the memory store, and the one way to write them: every write can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from plaita.backends.rows import EventRow, Grave, OutcomeRow, OutRow, Pulse, RunRow, StartRow, WaitRow
from plaita.ports.flows import FlowVersion
from plaita.ports.inbox import DeadLetter, Deed, Message
from plaita.ports.processes import Process
from plaita.ports.queries import Entry
from plaita.ports.tasks import Task
from plaita.ports.values import Mail, RunId, WaitId

K = TypeVar("K")
V = TypeVar("V")
_ABSENT: Any = object()


@dataclass(slots=True)
class Belongings:
    """What hangs on one run."""

    start: StartRow
    outcome: OutcomeRow = field(default_factory=OutcomeRow)
    frames: dict[str, bytes] = field(default_factory=dict)
    history: list[Entry] = field(default_factory=list)
    waits: dict[WaitId, WaitRow] = field(default_factory=dict)
    mailbox: dict[int, Mail] = field(default_factory=dict)
    consumed: dict[int, None] = field(default_factory=dict)


@dataclass(slots=True)
class Tables:
    """Everything a memory store holds. ``due`` indexes the live runs somebody must look at; ``uses`` says when each
    closure was used last."""

    runs: dict[int, RunRow] = field(default_factory=dict)
    ids: dict[RunId, int] = field(default_factory=dict)
    names: dict[str, RunId] = field(default_factory=dict)
    due: dict[int, int] = field(default_factory=dict)
    held: dict[int, str] = field(default_factory=dict)
    belongings: dict[int, Belongings] = field(default_factory=dict)
    events: dict[int, EventRow] = field(default_factory=dict)
    event_ids: dict[str, int] = field(default_factory=dict)
    outbox: dict[int, OutRow] = field(default_factory=dict)
    quota: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    promotions: dict[str, int] = field(default_factory=dict)
    graves: dict[RunId, Grave] = field(default_factory=dict)
    inbox: dict[str, tuple[int, Message]] = field(default_factory=dict)
    dead: dict[int, DeadLetter] = field(default_factory=dict)
    deeds: list[Deed] = field(default_factory=list)
    tasks: dict[str, Task] = field(default_factory=dict)
    task_numbers: dict[str, int] = field(default_factory=dict)
    closures: dict[str, bytes] = field(default_factory=dict)
    uses: dict[str, int] = field(default_factory=dict)
    flows: dict[tuple[str, str], FlowVersion] = field(default_factory=dict)
    processes: dict[int, Process] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    pulse: dict[str, Pulse] = field(default_factory=dict)


class Journal:
    """Writes and how to take them back."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    @property
    def length(self) -> int:
        """How many writes there were."""
        return len(self._undo)

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        old = table.get(key, _ABSENT)
        table[key] = value
        self._undo.append((lambda: table.pop(key, None)) if old is _ABSENT else (lambda: table.__setitem__(key, old)))

    def cut(self, table: dict[K, V], key: K) -> None:
        """Remove a key; a missing one is fine."""
        old = table.pop(key, _ABSENT)
        if old is not _ABSENT:
            self._undo.append(lambda: table.__setitem__(key, old))

    def append(self, items: list[V], item: V) -> None:
        items.append(item)
        self._undo.append(items.pop)

    def count(self, counters: dict[str, int], name: str) -> int:
        """The next number of a counter."""
        number = counters.get(name, 0) + 1
        self.put(counters, name, number)
        return number

    def undo(self) -> None:
        for step in reversed(self._undo):
            step()
