"""Ids and the small values that cross every seam of the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NewType

from plaita.base.record import record

RunId = NewType("RunId", str)
WaitId = NewType("WaitId", str)

Status = Literal["queued", "running", "suspended", "completed", "error", "cancelled"]
STATUSES: tuple[Status, ...] = ("queued", "running", "suspended", "completed", "error", "cancelled")
TERMINAL: frozenset[str] = frozenset({"completed", "error", "cancelled"})

Close = Literal["read", "event", "timeout", "cut"]
"""Why a settle closes a wait."""


@record
class Token:
    """Proof of a claim. ``nonce`` is random per claim and begins with ``<holder>.``; ``generation`` only grows."""

    nonce: str
    generation: int
    incarnation: str


@dataclass(frozen=True, slots=True)
class Parent:
    """Who is told when a child run ends: the wait of that incarnation of the parent."""

    run_id: RunId
    incarnation: str
    wait_id: WaitId


@record
class Mail:
    """One mailbox entry. ``wake``: the wait is resolved, ``data`` is the answer. ``candidate``: an event on offer.
    ``timeout``: the wait is open, and the holder is to close it as its deadline would.

    ``event`` is the event's number (0 for a wake by hand or child); ``data`` is JSON bytes.
    """

    number: int
    kind: Literal["wake", "candidate", "timeout"]
    wait_id: WaitId
    data: bytes
    event: int = 0


@dataclass(frozen=True, slots=True)
class By:
    """What resolved or closed a wait. ``kind`` is ``hand``, ``event``, ``child``, ``timeout``, ``cut`` or ``cancel``.

    ``digest`` identifies the answer of a ``hand`` or ``child``; ``event`` the number of an ``event``.
    """

    kind: Literal["hand", "event", "child", "timeout", "cut", "cancel"]
    event: int = 0
    digest: str = ""
    actor: str = ""
