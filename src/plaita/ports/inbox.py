"""Messages of producers: starts, answers, events and cancels that were sent, not called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from plaita.ports.events import Published
from plaita.ports.runs import AlreadyTerminal, Cancelled, CancelRequested, NoRun, NotRetryable, Reopened, WakeAnswer
from plaita.ports.values import RunId

Reason = Literal[
    "invalid_payload", "unknown_type", "unknown_resume_type", "conflict", "tombstoned", "too_old",
    "no_run", "unsupported_schema", "max_deliveries", "tenant_disabled", "family_mismatch", "stale_epoch",
]  # fmt: skip
"""Why a message is a dead letter."""

Passing = Literal["goes_on", "already_suspended", "already_terminal", "not_bound"]
"""Why a message had nothing to do: the execution goes on or waits by itself, has ended, or waits for something else."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it came; ``at_ms`` is the store's time of the offer.

    ``body`` is the JSON text of an object. Its fields:

    - all types: ``type`` (``start``, ``resume``, ``event``, ``cancel``), ``tenant_id``, ``timestamp`` (ISO 8601, when
      it was first sent; without an offset in UTC; what is no time is passed over)
    - ``start``: ``flow_id``, ``version`` (the latest without), ``params`` (an object, the input), ``execution_id``,
      ``dedup_key``, ``queue``; ``quota_bypass`` ``true``: it waits for no slot. Without an id the execution is named
      after ``dedup_key``, else after the message
    - ``resume``: ``resume_type``, ``execution_id``, ``flow_id`` (when given, the flow of the execution)

      - ``event``, the default: ``wait_id``, ``data``; the wait may be named in ``data`` as its ``subscription_id``, and
        ``event_data`` there is then the answer, ``event_type`` what the wait waits for; with ``event_type`` in place of
        a wait it is an event
      - ``timeout``: names its wait in the same ways; the wait ends as at its deadline
      - ``retry``: reopens an execution that ended in error or is blocked
      - ``continue``: nothing to do, executions go on by themselves
      - ``cancel``
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
class Retried:
    """The execution was reopened, or cannot be."""

    answer: Reopened | NotRetryable


@dataclass(frozen=True, slots=True)
class Passed:
    """The message makes sense and there is nothing to do."""

    why: Passing


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


Outcome: TypeAlias = Started | Resumed | Retried | Passed | EventAccepted | CancelAccepted | DeadLettered


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message has left the inbox."""

    message_id: str
    outcome: Outcome


MESSAGE_TYPES: Final = ("start", "resume", "event", "cancel")
"""What a message may ask for, by its field ``type``."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A refused message, with the reason: a ``Reason``, or what another program says in its place.

    The body is as it came, except for blanks and the order of fields where it is an object.

    ``replays``: how often it was sent again. ``truncated``: it was so long that only its beginning is kept.
    """

    message: Message
    reason: str
    detail: str
    died_ms: int
    letter_id: str = ""
    replays: int = 0
    schema_version: int = 1
    schema_version_max: int = 1
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Deed:
    """What somebody did, or wanted to do, with a dead letter. ``message_id``: the message that came of it."""

    letter_id: str
    at_ms: int
    action: Literal["replay", "discard"]
    actor: str
    result: str
    force: bool
    message_id: str


@dataclass(frozen=True, slots=True)
class Replaying:
    """Send a dead letter again. ``force``: also when it was sent again before.

    ``tenant`` and ``execution_id``: what the message must say, or is given when it says nothing; ``default_tenant``:
    whose it is when nobody says.
    """

    letter_id: str
    actor: str
    force: bool = False
    tenant: str = ""
    execution_id: str = ""
    default_tenant: str = ""


ReplayRefusal = Literal[
    "not_replayable", "schema_too_new", "carrier_timestamp_unknown", "tenant_mismatch", "execution_id_mismatch",
    "execution_deleted", "already_replayed", "enqueue_failed",
]  # fmt: skip
"""Why a dead letter is not sent again."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The message waits in the inbox. ``run_id``: whom it is for; empty for an event."""

    message_id: str
    run_id: RunId


@dataclass(frozen=True, slots=True)
class NotReplayed:
    reason: ReplayRefusal
    detail: str


@dataclass(frozen=True, slots=True)
class Discarded:
    letter_id: str


@dataclass(frozen=True, slots=True)
class NoLetter:
    letter_id: str


class InboxStore(Protocol):
    """Effect, acknowledgement and dead letter of a message are one step, so a second delivery is harmless."""

    async def offer(self, message_id: str, body: bytes) -> Offered:
        """Store a message. The body is looked at when it is accepted. Raises ``InputError``: no id, or too large."""

    async def accept(self, n: int) -> list[Accepted]:
        """Carry out up to ``n`` messages, oldest first. An empty inbox costs one read."""

    async def dead_letters(self, *, limit: int = 100, cursor: str = "") -> tuple[list[DeadLetter], str]:
        """Refused messages, oldest first; the cursor of the next page or an empty text.

        Raises ``InputError`` for a cursor that no page gave.
        """

    async def dead_letter(self, letter_id: str) -> tuple[DeadLetter, list[Deed]] | None:
        """One of them, with what was done with it, oldest first."""

    async def replay(self, asked: Replaying) -> Replayed | NotReplayed | NoLetter:
        """Send the message of a dead letter again, once. The letter stays; every attempt is recorded."""

    async def discard(self, letter_id: str, actor: str) -> Discarded | NoLetter:
        """Throw a dead letter away. That is recorded."""

    async def backlog(self) -> int:
        """How many messages wait to be accepted."""
