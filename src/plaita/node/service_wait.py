"""What the waits have in common that a service outside answers: ``http_callback``, ``redis_queue``, ``kafka_queue``.

The node says in its state what the service has to do (``service_config``) and waits for the event that the service
publishes: of its type, with the id of the execution as key. Anybody else may answer it too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import field_validator

from plaita.base.duration import parse_duration_ms
from plaita.base.json import Json
from plaita.engine import steps
from plaita.engine.effects import WaitSpec
from plaita.engine.frames import Frame
from plaita.engine.values import kind_of
from plaita.node.basic import Node
from plaita.node.credentials import look_at_secret
from plaita.node.event_node import (
    RETRY_CONFIG,
    EventWait,
    checked_filter,
    deadline,
    limit,
    refuse,
    seconds_of,
    wanted_of,
)

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink
    from plaita.engine.program import Eval


@dataclass(frozen=True, slots=True)
class Rule:
    """What the value of a field must be, checked at load when it is written and when it is evaluated.

    ``kind``: ``text`` that is not blank, ``choice`` of ``choices``, ``whole`` number from ``least`` to ``most`` (of
    units of ``unit_ms``, or an ISO 8601 duration, rounded up), ``flag``, ``object``, ``servers`` (a list of texts, or
    one text with commas), ``secret`` (text).
    """

    kind: Literal["text", "choice", "whole", "flag", "object", "servers", "secret"]
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 10**9
    optional: bool = False
    unit_ms: int | None = None

    def check(self, value: Json) -> Json:
        """The value as the service gets it. Raises ``ValueError``."""
        if value is None and self.optional:
            return None
        match self.kind:
            case "text" | "secret" if isinstance(value, str) and value.strip():
                return value
            case "choice" if value in self.choices:
                return value
            case "flag" if isinstance(value, bool):
                return value
            case "object" if isinstance(value, dict):
                return value
            case "whole":
                return self._whole(value)
            case "servers":
                return _servers(value)
        shown = repr(value) if self.kind == "choice" else _kind(value)
        raise ValueError(f"needs {self.words}, not {shown}")

    @property
    def words(self) -> str:
        """What is expected."""
        return {
            "text": "text that is not blank",
            "secret": "text that is not blank",
            "flag": "true or false",
            "object": "an object",
            "servers": "a list of servers",
        }.get(self.kind) or " or ".join(self.choices)

    def _whole(self, value: Json) -> int:
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            value = int(value)
        if isinstance(value, str) and value.startswith("P") and self.unit_ms is not None:
            value, rest = divmod(parse_duration_ms(value), self.unit_ms)
            value += rest > 0
        if type(value) is not int or not self.least <= value <= self.most:
            raise ValueError(f"{value!r} is not a whole number from {self.least} to {self.most}")
        return value


def _servers(value: Json) -> list[str]:
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(server, str) for server in found):
        raise ValueError(f"{kind_of(value)} is not a list of servers")
    servers = [server.strip() for server in found if server.strip()]
    if not servers:
        raise ValueError("no server is named")
    return servers


class ServiceNode(Node):
    """A node that waits for a service. ``rules`` are its fields that may hold expressions."""

    is_suspending: ClassVar[bool] = True
    builtin: ClassVar[bool] = True
    rules: ClassVar[Mapping[str, Rule]] = {}

    event_type: str
    event_filter: Any = {}
    subscription_timeout: Any = None

    @field_validator("event_type")
    @classmethod
    def _event_type(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("an event needs a type: text that is not blank")
        return value

    @field_validator("event_filter")
    @classmethod
    def _event_filter(cls, value: Any) -> Any:
        return checked_filter(value)

    def link(self, link: NodeLink) -> None:
        link.linking.waits.append(link.label)
        values: dict[str, Eval] = {}
        literal: set[str] = set()
        sound = True
        for field, rule in self.rules.items():
            raw = getattr(self, field)
            compiled = link.compiled(raw, field)
            values[field] = compiled.run
            if compiled.constant and not compiled.findings:
                literal.add(field)
                try:
                    rule.check(raw)
                except ValueError as e:
                    sound = False
                    link.report("bad_field", field, f"{field}: {e}")
                if rule.kind == "secret":
                    look_at_secret(link, raw, field)
        if literal == set(self.rules) and sound:
            self._try_config(link)
        timeout = seconds_of(link, self.subscription_timeout, "subscription_timeout", limit)
        event_filter = link.value(self.event_filter, "event_filter")
        link.cn.waiting = ServiceWait(self, values, frozenset(literal), event_filter, timeout)
        link.cn.step = steps.wait(link.cn)

    def _try_config(self, link: NodeLink) -> None:
        """Fields that are written may also not fit together."""
        values = {field: rule.check(getattr(self, field)) for field, rule in self.rules.items()}
        try:
            self.config(Given(values, frozenset(values), "", "", "", 0))
        except ValueError as e:
            link.report("bad_field", "", str(e))

    @abstractmethod
    def config(self, given: Given) -> dict[str, Json]:
        """The parts of ``service_config`` that are this type's own. Raises ``ValueError``."""

    @abstractmethod
    def limit_ms(self, values: Mapping[str, Json]) -> int | None:
        """How long to wait; ``None`` for ever."""


@dataclass(frozen=True, slots=True)
class Given:
    """The evaluated fields of one wait, those of them that are written as they are, and what names the wait."""

    values: Mapping[str, Json]
    literal: frozenset[str]
    flow_id: str
    execution_id: str
    address: str
    now_ms: int


class ServiceWait(EventWait):
    """The waiting half."""

    def __init__(
        self,
        node: ServiceNode,
        values: Mapping[str, Eval],
        literal: frozenset[str],
        event_filter: Eval,
        timeout: Eval | None,
    ) -> None:
        super().__init__(node.id, _nothing, event_filter, None, timeout, reuse=False)
        self.node, self.values, self.literal = node, values, literal

    def spec(self, frame: Frame) -> WaitSpec:
        node, now, execution_id = self.node, frame.run.now_ms, frame.run.execution_id
        values: dict[str, Json] = {}
        for field, value in self.values.items():
            try:
                values[field] = node.rules[field].check(value(frame))
            except ValueError as e:
                raise refuse(node.id, node.node_type, f"{field}: {e}") from None
        wanted = wanted_of(node.id, node.node_type, self.event_filter(frame))
        given = Given(values, self.literal, frame.flow_id or "", execution_id, frame.where(node.id), now)
        try:
            config = node.config(given)
        except ValueError as e:
            raise refuse(node.id, node.node_type, str(e)) from None
        pending: dict[str, Json] = {
            "event_type": node.event_type,
            "event_filter": wanted,
            "is_async": True,
            "event_id": f"event_{node.id}_{now}",
            "status": "pending",
            "node_subtype": node.node_type,
            "service_config": {
                "type": node.node_type,
                "node_id": node.id,
                "execution_id": execution_id,
                "flow_id": frame.flow_id,
                "event_type": node.event_type,
                "event_filter": wanted,
                "retry_config": RETRY_CONFIG,
                **config,
            },
        }
        longest = node.limit_ms(values)
        own = None if longest is None else now + longest
        ends = [t for t in (own, deadline(node.id, frame, self.timeout)) if t is not None]
        return WaitSpec(
            "event",
            pending,
            node.event_type,
            key=execution_id,
            by_filter=bool(wanted),
            deadline_ms=min(ends, default=None),
        )


def _nothing(_frame: Frame) -> Json:
    return None


def _kind(value: Json) -> str:
    return "blank text" if isinstance(value, str) and not value.strip() else kind_of(value)
