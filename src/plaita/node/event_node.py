"""``event``: waits for an event. The base of everything that waits."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import field_validator

from plaita.base.duration import parse_duration_ms
from plaita.base.json import Json
from plaita.engine import steps
from plaita.engine.effects import WaitSpec
from plaita.engine.failure import NODE_CODE, Failure, FailureRaised
from plaita.engine.frames import Frame
from plaita.engine.values import json_equal, render
from plaita.node.basic import Node
from plaita.node.computed import is_computed

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink
    from plaita.engine.program import Eval


RETRY_CONFIG: Final[dict[str, Json]] = {"max_retries": 3, "retry_delay_ms": 1000, "exponential_backoff": True}
"""What ``service_config`` says to whoever carries out a wait."""


class EventNodeStatus(StrEnum):
    """The words of ``status`` in the state of a node that waits or waited."""

    PENDING = "pending"
    COMPLETED = "completed"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class EventNode(Node):
    """Waits for an event of ``eventType`` whose data satisfies ``eventFilter`` (dotted path to expected value).

    With ``correlation`` the event must carry that key (text, or the JSON of another value; null fails the node), and
    counts from the submit of the execution on; without it, from the moment the node waits. ``subscriptionTimeout``
    (seconds) gives up with ``status: timeout``. One event answers one wait of an execution unless ``reuse`` is set.

    Result: ``{event_type, event_filter, is_async, event_id, status, event_data}``, status ``completed`` or ``timeout``.
    """

    node_type: ClassVar[str] = "event"
    node_name: ClassVar[str] = "Event"
    is_suspending: ClassVar[bool] = True
    builtin: ClassVar[bool] = True

    event_type: Any
    event_filter: Any = None
    subscription_timeout: Any = None
    correlation: Any = None
    reuse: bool = False

    @field_validator("event_type")
    @classmethod
    def _event_type(cls, value: Any) -> Any:
        if not isinstance(value, str) or not value.strip():
            raise ValueError("an event needs a type: text that is not blank")
        return value

    @field_validator("event_filter")
    @classmethod
    def _event_filter(cls, value: Any) -> Any:
        return checked_filter(value)

    @field_validator("correlation")
    @classmethod
    def _correlation(cls, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return value
        raise ValueError(f"{value!r} is neither text nor an expression; write the key as text")

    def link(self, link: NodeLink) -> None:
        link.linking.waits.append(link.label)
        link.cn.waiting = self.waiting(link)
        link.cn.step = steps.wait(link.cn)

    def waiting(self, link: NodeLink) -> EventWait:
        """The waiting half, compiled."""
        return EventWait(
            self.id,
            link.value(self.event_type, "event_type"),
            link.value(self.event_filter, "event_filter"),
            None if self.correlation is None else link.value(self.correlation, "correlation"),
            seconds_of(link, self.subscription_timeout, "subscription_timeout", limit),
            self.reuse,
        )


def checked_filter(value: Any) -> Any:
    """A filter as it is written. Raises ``ValueError``."""
    if value is None or isinstance(value, dict) or is_computed(value):
        return value
    raise ValueError(f"{value!r} is neither an object of paths and values nor an expression")


def wanted_of(node_id: str, kind: str, value: Json) -> dict[str, Json]:
    """An evaluated filter: paths and the values that an event must have there."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise refuse(node_id, kind, f"eventFilter is {value!r}, not an object")
    return value


def seconds_of(link: NodeLink, raw: Any, field: str, read: Callable[[Json], float]) -> Eval | None:
    """Seconds as ``read`` takes them, or an expression for them; ``None`` for no limit."""
    if raw is None:
        return None
    if not is_computed(raw):
        try:
            read(raw)
        except ValueError as e:
            link.report("bad_number", field, str(e))
            return None
    return link.value(raw, field)


def number(raw: Json, unit_ms: int = 1000) -> float:
    """How many units: a number of JSON, its digits, or an ISO 8601 duration; raises ``ValueError``."""
    if isinstance(raw, str) and raw.startswith("P"):
        raw = parse_duration_ms(raw) / unit_ms
    if isinstance(raw, str):
        try:
            raw = float(raw)
        except ValueError:
            raise ValueError(f"{raw!r} is neither a number nor a duration such as PT90S") from None
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise ValueError(f"{'null' if raw is None else repr(raw)} is not a number")
    if not 0 <= raw < 10**10:
        raise ValueError(f"{raw} is out of range: 0 or more, below 10,000,000,000")
    return float(raw)


def limit(raw: Json) -> float:
    """A number of seconds above 0; raises ``ValueError``."""
    seconds = number(raw)
    if seconds == 0:
        raise ValueError("0 seconds would be over at once; leave the limit out to wait for ever")
    return seconds


def refuse(node_id: str, kind: str, what: str) -> FailureRaised:
    """A waiting node whose fields make no sense at run time."""
    return FailureRaised(Failure("node_error", NODE_CODE, f"node {node_id!r} ({kind}): {what}"))


class EventWait:
    """The waiting half of ``event``."""

    def __init__(
        self,
        node_id: str,
        event_type: Eval,
        event_filter: Eval,
        correlation: Eval | None,
        timeout: Eval | None,
        reuse: bool,
    ) -> None:
        self.node_id, self.event_type, self.event_filter = node_id, event_type, event_filter
        self.correlation, self.timeout, self.reuse = correlation, timeout, reuse

    def spec(self, frame: Frame) -> WaitSpec:
        now = frame.run.now_ms
        event_type = self.event_type(frame)
        if not isinstance(event_type, str) or not event_type.strip():
            raise refuse(self.node_id, "event", f"the event type is {event_type!r}, not text")
        wanted = wanted_of(self.node_id, "event", self.event_filter(frame))
        key = None if self.correlation is None else _key(self.node_id, self.correlation(frame))
        pending: dict[str, Json] = {
            "event_type": event_type,
            "event_filter": wanted,
            "is_async": True,
            "event_id": f"event_{self.node_id}_{now}",
            "status": "pending",
        }
        return WaitSpec(
            "event",
            pending,
            event_type,
            key,
            by_filter=bool(wanted),
            reuse=self.reuse,
            deadline_ms=deadline(self.node_id, frame, self.timeout),
        )

    def matches(self, pending: dict[str, Json], data: Json) -> bool:
        return all(json_equal(_dig(data, path), wanted) for path, wanted in (pending.get("event_filter") or {}).items())

    def resume(self, pending: dict[str, Json], kind: Literal["event", "timeout"], data: Json) -> Json:
        if kind == "timeout":
            return {**pending, "status": "timeout"}
        return {**pending, "status": "completed", "event_data": data}


def _key(node_id: str, value: Json) -> str:
    """The key of a correlated wait. Null is refused: without a key any event of the type would be taken."""
    if value is None:
        raise refuse(node_id, "event", "correlation is null, so no event could be told from another")
    return value if isinstance(value, str) else render(value)


def deadline(node_id: str, frame: Frame, seconds: Eval | None) -> int | None:
    """An absolute time from an evaluated number of seconds from now; ``None`` for no limit."""
    if seconds is None:
        return None
    try:
        return frame.run.now_ms + int(limit(seconds(frame)) * 1000)
    except ValueError as e:
        raise refuse(node_id, "wait", str(e)) from None


def _dig(data: Json, path: str) -> Json:
    for step in path.split("."):
        data = data.get(step) if isinstance(data, dict) else None
    return data
