"""Events: published once, delivered to every wait whose window they fall into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Published:
    """``number`` in the event sequence; ``matched`` waits seen so far, ``woken`` of them, ``pending``: more to come."""

    event_id: str
    number: int
    matched: int
    woken: int
    pending: bool
    duplicate: bool = False


class EventStore(Protocol):
    """The event log and its fan-out."""

    async def publish(self, event_id: str, event_type: str, key: str | None, data: bytes) -> Published:
        """Store an event and wake the first chunk of matching waits; a known id answers as the first time."""
