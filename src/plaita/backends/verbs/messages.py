"""What a producer's message asks for: its text, checked, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from plaita.base.errors import InputError
from plaita.base.ids import check_id, derived_id
from plaita.base.json import Json, encode, parse
from plaita.ports.inbox import DeadLettered, Message, Reason
from plaita.ports.values import RunId, WaitId

DETAIL_CHARS_MAX = 500
TENANT = QUEUE = "default"
BOUND = "__plaita_subscription_id"


@dataclass(frozen=True, slots=True)
class Start:
    run_id: RunId
    tenant: str
    flow_id: str
    version: str
    data: bytes
    queue: str
    name: str = ""
    """What the run is called besides its id: starts with one name are one start."""


@dataclass(frozen=True, slots=True)
class Answer:
    run_id: RunId
    tenant: str
    wait_id: WaitId
    data: bytes


@dataclass(frozen=True, slots=True)
class Stop:
    run_id: RunId
    tenant: str


@dataclass(frozen=True, slots=True)
class Announce:
    event_id: str
    event_type: str
    key: str | None
    data: bytes


Order: TypeAlias = Start | Answer | Stop | Announce


@dataclass(frozen=True, slots=True)
class Wanted:
    """``since_ms``: when it was first sent, as far as one can believe it."""

    order: Order
    since_ms: int


def read(message: Message) -> Wanted | DeadLettered:
    """Check everything that can be known without the store."""
    try:
        body = parse(message.body)
        if not isinstance(body, dict):
            raise InputError("$", "a message is an object")
        fields = Fields(body)
        order = _order(message, fields)
        return order if isinstance(order, DeadLettered) else Wanted(order, min(message.at_ms, fields.time(message)))
    except InputError as e:
        return refused("invalid_payload", str(e))


class Fields:
    """The fields of a body; ``null`` counts as absent. All raise ``InputError`` with the path."""

    def __init__(self, body: dict[str, Json]) -> None:
        self._body = body

    def text(self, name: str, default: str | None = None) -> str:
        """A text; an empty one counts as absent. Without a default it is needed."""
        value = self._body.get(name)
        if value is None or value == "":
            if default is None:
                raise InputError(f"$.{name}", "is missing")
            return default
        if not isinstance(value, str):
            raise InputError(f"$.{name}", "must be text")
        return value

    def id(self, name: str, default: str | None = None) -> str:
        """A text that can be an id."""
        found = self.text(name, default)
        check_id(found, f"$.{name}")
        return found

    def data(self, name: str) -> bytes:
        """Any value, as JSON bytes."""
        return encode(self._body.get(name))

    def object(self, name: str) -> bytes:
        """An object, as JSON bytes; the empty one when absent."""
        value = self._body.get(name)
        if not isinstance(value, dict | None):
            raise InputError(f"$.{name}", "must be an object")
        return encode(value or {})

    def subscribed(self, name: str) -> tuple[str, bytes]:
        """The wait that an object names as its subscription, and the answer in it: ``event_data``, or all the rest."""
        value = self._body.get(name)
        said = value if isinstance(value, dict) else {}
        wait_id = said.get("subscription_id") or said.get(BOUND)
        if not isinstance(wait_id, str):
            raise InputError("$", f"a resume needs a wait_id, an event_type or a subscription_id in {name}")
        rest = {key: said[key] for key in said if key not in ("subscription_id", BOUND)}
        return wait_id, encode(said.get("event_data", rest))

    def time(self, message: Message) -> int:
        """``timestamp`` in ms since 1970; the time of the offer without one."""
        text = self.text("timestamp", "")
        if not text:
            return message.at_ms
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            raise InputError("$.timestamp", "must be an ISO 8601 time") from None
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def refused(reason: Reason, detail: str) -> DeadLettered:
    """A dead letter's words."""
    return DeadLettered(reason, bounded(detail))


def bounded(detail: str) -> str:
    """A detail may quote the message, which may be long."""
    return detail if len(detail) <= DETAIL_CHARS_MAX else f"{detail[:DETAIL_CHARS_MAX]}…"


def _order(message: Message, fields: Fields) -> Order | DeadLettered:
    kind = fields.text("type")
    match kind:
        case "start":
            return _start(message, fields)
        case "resume":
            return _resume(message, fields)
        case "event":
            return _event(message, fields)
        case "cancel":
            return _stop(fields)
    return refused("unknown_type", f"$.type: {kind!r} is none of start, resume, event, cancel")


def _start(message: Message, fields: Fields) -> Start:
    tenant, key = fields.id("tenant_id", TENANT), fields.text("dedup_key", "")
    # An id that follows from the message lets a second delivery find the run of the first.
    name = derived_id("key", tenant, key) if key else ""
    return Start(
        RunId(fields.id("execution_id", name or derived_id("message", message.message_id))),
        tenant,
        fields.text("flow_id"),
        fields.text("version", ""),
        fields.object("params"),
        fields.id("queue", QUEUE),
        name,
    )


def _resume(message: Message, fields: Fields) -> Order | DeadLettered:
    kind = fields.text("resume_type", "event")
    if kind == "cancel":
        return _stop(fields)
    if kind != "event":
        # When a run goes on, is retried or timed out is in the due index; no message decides it.
        return refused("unknown_resume_type", f"$.resume_type: {kind!r} is none of event, cancel")
    wait_id, data = fields.text("wait_id", ""), fields.data("data")
    if not wait_id and not fields.text("event_type", ""):
        wait_id, data = fields.subscribed("data")
    if wait_id:
        return Answer(RunId(fields.id("execution_id")), fields.id("tenant_id", TENANT), WaitId(wait_id), data)
    return _event(message, fields)


def _event(message: Message, fields: Fields) -> Announce:
    event_id = fields.id("event_id", message.message_id)
    return Announce(event_id, fields.text("event_type"), fields.text("key", "") or None, fields.data("data"))


def _stop(fields: Fields) -> Stop:
    return Stop(RunId(fields.id("execution_id")), fields.id("tenant_id", TENANT))
