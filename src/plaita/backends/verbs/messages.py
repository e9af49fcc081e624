"""What a producer's message asks for: its text, checked, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from plaita.base.errors import InputError
from plaita.base.ids import check_id, check_queue, derived_id
from plaita.base.json import Json, encode, parse
from plaita.ports.inbox import MESSAGE_TYPES, DeadLettered, Message, Reason
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
    beside: bool = False
    """Its producer has waited long enough: it takes no place in the queue for a slot."""


@dataclass(frozen=True, slots=True)
class Aim:
    """The execution a message is for. ``flow_id``: the flow it must be of, if the message says so."""

    run_id: RunId
    tenant: str
    flow_id: str = ""


@dataclass(frozen=True, slots=True)
class Binding:
    """The wait a message is for, and the type of event it must wait for, if the message says so."""

    wait_id: WaitId
    event_type: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    aim: Aim
    binding: Binding
    data: bytes


@dataclass(frozen=True, slots=True)
class Elapse:
    """End a wait as its deadline would."""

    aim: Aim
    binding: Binding


@dataclass(frozen=True, slots=True)
class GoOn:
    """Go on; ``revive``: also when the execution ended in error."""

    aim: Aim
    revive: bool


@dataclass(frozen=True, slots=True)
class Stop:
    aim: Aim


@dataclass(frozen=True, slots=True)
class Announce:
    event_id: str
    event_type: str
    key: str | None
    data: bytes


Aimed: TypeAlias = Answer | Elapse | GoOn | Stop
Order: TypeAlias = Start | Aimed | Announce


@dataclass(frozen=True, slots=True)
class Wanted:
    """``since_ms``: when it was first sent, as far as one can believe it. ``unreadable``: what could not be read of it
    and was passed over. ``names_tenant``: the message says whose it is.
    """

    order: Order
    since_ms: int
    unreadable: tuple[str, ...] = ()
    names_tenant: bool = False


def read(message: Message) -> Wanted | DeadLettered:
    """Check everything that can be known without the store."""
    if not message.body:
        return refused(
            "invalid_payload", "$: the message is empty; on Redis it stands in the field payload of its entry"
        )
    try:
        body = parse(message.body)
        if not isinstance(body, dict):
            raise InputError("$", "a message is an object")
        fields = Fields(body)
        order = _order(message, fields)
        if isinstance(order, DeadLettered):
            return order
        sent = fields.time(message)
        unreadable = ("time_unreadable",) if sent is None else ()
        since_ms = message.at_ms if sent is None else min(message.at_ms, sent)
        return Wanted(order, since_ms, unreadable, fields.has("tenant_id"))
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

    def queue(self, name: str, default: str) -> str:
        """A text that can be the name of a queue."""
        found = self.text(name, default)
        check_queue(found, f"$.{name}")
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

    def aim(self) -> Aim:
        """The execution the message names."""
        return Aim(RunId(self.id("execution_id")), self.id("tenant_id", TENANT), self.text("flow_id", ""))

    def subscribed(self, name: str) -> tuple[Binding, bytes]:
        """The wait that an object names as its subscription, and the answer in it: ``event_data``, or all the rest."""
        value = self._body.get(name)
        said = value if isinstance(value, dict) else {}
        wait_id = said.get("subscription_id") or said.get(BOUND)
        if not isinstance(wait_id, str):
            raise InputError("$", f"a resume needs a wait_id, an event_type or a subscription_id in {name}")
        rest = {key: said[key] for key in said if key not in ("subscription_id", BOUND)}
        event_type = said.get("event_type")
        binding = Binding(WaitId(wait_id), event_type if isinstance(event_type, str) else "")
        return binding, encode(said.get("event_data", rest))

    def time(self, message: Message) -> int | None:
        """``timestamp`` in ms since 1970; the time of the offer without one; ``None`` when it is no time."""
        value = self._body.get("timestamp")
        if value is None or value == "":
            return message.at_ms
        try:
            found = datetime.fromisoformat(str(value))
            return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
        except (ValueError, OverflowError):
            return None

    def has(self, name: str) -> bool:
        """Whether it says anything."""
        return bool(self._body.get(name))

    def flag(self, name: str) -> bool:
        """Whether it is ``true``; anything else is not."""
        return self._body.get(name) is True


def refused(reason: Reason, detail: str) -> DeadLettered:
    """A dead letter's words."""
    return DeadLettered(reason, bounded(detail))


def bounded(detail: str) -> str:
    """A detail may quote the message, which may be long."""
    return detail if len(detail) <= DETAIL_CHARS_MAX else f"{detail[:DETAIL_CHARS_MAX]}…"


def _order(message: Message, fields: Fields) -> Order | DeadLettered:
    kind = fields.text("type", "")
    if not kind:
        raise InputError("$.type", f"is missing: one of {', '.join(MESSAGE_TYPES)}")
    match kind:
        case "start":
            return _start(message, fields)
        case "resume":
            return _resume(message, fields)
        case "event":
            return _event(message, fields)
        case "cancel":
            return Stop(fields.aim())
    return refused("unknown_type", f"$.type: {kind!r} is none of {', '.join(MESSAGE_TYPES)}")


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
        fields.queue("queue", QUEUE),
        name,
        fields.flag("quota_bypass"),
    )


def _resume(message: Message, fields: Fields) -> Order | DeadLettered:
    kind = fields.text("resume_type", "event")
    match kind:
        case "cancel":
            return Stop(fields.aim())
        case "continue" | "retry":
            return GoOn(fields.aim(), revive=kind == "retry")
        case "timeout":
            return Elapse(fields.aim(), _bound(fields)[0])
        case "event" if fields.text("wait_id", "") or not fields.text("event_type", ""):
            return Answer(fields.aim(), *_bound(fields))
        case "event":
            return _event(message, fields)
    known = "continue, retry, event, timeout, cancel"
    return refused("unknown_resume_type", f"$.resume_type: {kind!r} is none of {known}")


def _bound(fields: Fields) -> tuple[Binding, bytes]:
    wait_id = fields.text("wait_id", "")
    return (Binding(WaitId(wait_id)), fields.data("data")) if wait_id else fields.subscribed("data")


def _event(message: Message, fields: Fields) -> Announce:
    event_id = fields.id("event_id", message.message_id)
    return Announce(event_id, fields.text("event_type"), fields.text("key", "") or None, fields.data("data"))
