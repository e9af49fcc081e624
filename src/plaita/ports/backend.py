"""Everything a store offers, gathered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from plaita.ports.events import EventStore
from plaita.ports.flows import FlowStore
from plaita.ports.inbox import InboxStore
from plaita.ports.processes import ProcessRegistry
from plaita.ports.queries import QueryStore
from plaita.ports.runs import RunStore
from plaita.ports.tasks import TaskStore
from plaita.ports.values import RunId


@dataclass(frozen=True, slots=True)
class Risk:
    """How a store may lose what it accepted, and what to do about it."""

    message: str
    hint: str


Health = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and what to do when it is not well."""

    name: str
    status: Health
    message: str
    hint: str = ""


class Backend(RunStore, EventStore, InboxStore, TaskStore, FlowStore, QueryStore, ProcessRegistry, Protocol):
    """One store. ``name`` is what messages call it, for example ``sqlite:///.plaita/plaita.db``."""

    @property
    def name(self) -> str: ...

    @property
    def lease_ms(self) -> int: ...

    async def hint(self, timeout_ms: int) -> None:
        """Return when something may have become due, or after the timeout. A hint may be false and may be missed."""

    def on_mail(self, tell: Callable[[RunId], None]) -> bool:
        """From now on call ``tell`` with held runs that got mail or are to be cancelled, in this event loop, as far as
        the store hears of it. ``False``: it does not; then a hint may mean that there is mail."""

    def on_command(self, instance: str, tell: Callable[[bytes], None]) -> bool:
        """From now on call ``tell`` with every message for that worker, in this event loop. ``False``: the store has no
        such channel."""

    async def risks(self) -> list[Risk]:
        """What about this store is not as safe as it could be; asks it, when it has to be asked."""

    async def examine(self) -> list[Finding]:
        """What an operator should know of what the store stands on: its durability first, then room and speed. Changes
        nothing; may take seconds on a large store."""

    async def backup(self, path: Path, *, replace: bool = True) -> None:
        """A consistent copy of the whole store as of now, while others work, in a new file at ``path``.

        The file appears whole or not at all. Raises ``NotSupported`` for a store that is no file, ``Conflict`` when
        there is something at ``path`` that must not be replaced, also when it comes there meanwhile, and
        ``Unavailable`` when the copy cannot be written or is not sound.
        """

    async def close(self) -> None:
        """Give back connections and locks."""
