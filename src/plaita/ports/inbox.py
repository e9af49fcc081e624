"""Messages of producers: starts, answers, events and cancels that were sent, not called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from plaita.ports.events import Published
from plaita.ports.runs import AlreadyTerminal, Cancelled, CancelRequested, NoRun, WakeAnswer
from plaita.ports.values import RunId

Reason = Literal[
    "invalid_payload", "unknown_type", "unknown_resume_type", "unknown_flow", "conflict", "tombstoned", "too_old",
    "no_run", "unsupported_schema", "max_deliveries", "tenant_disabled",
]  # fmt: skip
"""Why a message is a dead letter."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it came; ``at_ms`` is the store's time of the offer.

    ``body`` is the JSON text of an object. Its fields:

    - all types: ``type`` (``start``, ``resume``, ``event``, ``cancel``), ``tenant_id``, ``timestamp`` (ISO 8601, when
      it was first sent; without an offset in UTC)
    - ``start``: ``flow_id``, ``version`` (the latest without), ``params`` (an object, the input), ``execution_id``,
      ``dedup_key``, ``queue``. Without an id the execution is named after ``dedup_key``, else after the message
    - ``resume``: ``resume_type`` (``event``, the default, or ``cancel``), ``execution_id``, ``wait_id``, ``data``; the
      wait may be named in ``data`` as its ``subscription_id``, and ``event_data`` there is then the answer; with
      ``event_type`` in place of a wait it is an event
    - ``event``: ``event_type``, ``event_id`` (the message id without), ``key`` (``null``: uncorrelated), ``data``
    - ``cancel``: ``execution_id``

    Unknown fields are passed over.
    """

    message_id: str
    body: bytes
    at_ms: int


@dataclass(frozen=True, slots=True)
class Offered:
    """The message is stored; ``duplicate``: one of that id was waiting already and stays as it is."""

    duplicate: bool


@dataclass(frozen=True, slots=True)
class Started:
    run_id: RunId
    deduplicated: bool


@dataclass(frozen=True, slots=True)
class Resumed:
    """The wait was answered, or came too late for it."""

    answer: WakeAnswer


@dataclass(frozen=True, slots=True)
class EventAccepted:
    published: Published


@dataclass(frozen=True, slots=True)
class CancelAccepted:
    answer: Cancelled | CancelRequested | AlreadyTerminal | NoRun


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """The message touched nothing. ``detail`` says in words what is wrong, and where."""

    reason: Reason
    detail: str


Outcome: TypeAlias = Started | Resumed | EventAccepted | CancelAccepted | DeadLettered


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message has left the inbox."""

    message_id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A refused message as it came, with the reason."""

    message: Message
    reason: Reason
    detail: str
    died_ms: int


class InboxStore(Protocol):
    """Effect, acknowledgement and dead letter of a message are one step, so a second delivery is harmless."""

    async def offer(self, message_id: str, body: bytes) -> Offered:
        """Store a message. The body is looked at when it is accepted. Raises ``InputError``: no id, or too large."""

    async def accept(self, n: int) -> list[Accepted]:
        """Carry out up to ``n`` messages, oldest first. An empty inbox costs one read."""

    async def dead_letters(self, *, limit: int = 100, cursor: str = "") -> tuple[list[DeadLetter], str]:
        """Refused messages, oldest first, one a message id; the cursor of the next page or an empty text."""

    async def backlog(self) -> int:
        """How many messages wait to be accepted."""
