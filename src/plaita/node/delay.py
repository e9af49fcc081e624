"""``delay``: waits for a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import field_validator

from plaita.base.json import Json
from plaita.engine import steps
from plaita.engine.effects import WaitSpec
from plaita.engine.frames import Frame
from plaita.node.basic import Node
from plaita.node.event_node import RETRY_CONFIG, number, refuse, seconds_of

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink
    from plaita.engine.program import Eval

UNIT_MS = {"seconds": 1000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}


class DelayNode(Node):
    """Waits ``delay_seconds`` of ``delay_unit`` (seconds, minutes, hours, days), or for an ISO 8601 duration.

    Result: the documented event state with ``status: completed`` when the time is over (or somebody resumed it
    early) and ``service_config.delay_ms``.
    """

    node_type: ClassVar[str] = "delay"
    node_name: ClassVar[str] = "Delay"
    is_suspending: ClassVar[bool] = True
    builtin: ClassVar[bool] = True

    delay_seconds: Any
    delay_unit: str = "seconds"
    event_type: str = "delay_trigger"
    event_filter: dict[str, Any] = {}
    subscription_timeout: Any = None

    @field_validator("delay_seconds")
    @classmethod
    def _delay_seconds(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("null is no delay; write a number, a duration such as PT90S, or an expression")
        return value

    @field_validator("delay_unit")
    @classmethod
    def _unit(cls, value: str) -> str:
        if value.lower() not in UNIT_MS:
            raise ValueError(f"{value!r} is none of {', '.join(UNIT_MS)}")
        return value.lower()

    def link(self, link: NodeLink) -> None:
        link.linking.waits.append(link.label)
        amount = seconds_of(link, self.delay_seconds, "delay_seconds", number) or link.value(0, "delay_seconds")
        link.cn.waiting = DelayWait(self, amount)
        link.cn.step = steps.wait(link.cn)


class DelayWait:
    """The waiting half of ``delay``: a wait nobody has to answer."""

    def __init__(self, node: DelayNode, amount: Eval) -> None:
        self.node, self.amount = node, amount

    def spec(self, frame: Frame) -> WaitSpec:
        node, now = self.node, frame.run.now_ms
        value = self.amount(frame)
        try:
            unit_ms = UNIT_MS[node.delay_unit]
            delay_ms = int(number(value, unit_ms) * unit_ms)
        except ValueError as e:
            raise refuse(node.id, "delay", f"delay_seconds: {e}") from None
        pending: dict[str, Json] = {
            "event_type": node.event_type,
            "event_filter": node.event_filter,
            "is_async": True,
            "event_id": f"event_{node.id}_{now}",
            "status": "pending",
            "node_subtype": "delay",
            "service_config": {
                "type": "delay",
                "node_id": node.id,
                "execution_id": frame.run.execution_id,
                "flow_id": frame.flow_id,
                "event_type": node.event_type,
                "event_filter": node.event_filter,
                "retry_config": RETRY_CONFIG,
                "delay_ms": delay_ms,
                "trigger_timestamp": now + delay_ms,
            },
        }
        return WaitSpec("hand", pending, node.event_type, deadline_ms=now + delay_ms)

    def matches(self, pending: dict[str, Json], data: Json) -> bool:
        return True

    def resume(self, pending: dict[str, Json], kind: Literal["event", "timeout"], data: Json) -> Json:
        if kind == "timeout":
            config = pending["service_config"]
            data = {"trigger_type": "delay_completed", "delay_ms": config["delay_ms"]}
        return {**pending, "status": "completed", "event_data": data}
