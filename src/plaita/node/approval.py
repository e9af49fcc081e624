"""``approval``: waits for the votes of people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import field_validator

from plaita.base.json import Json
from plaita.engine import steps
from plaita.engine.effects import WaitSpec
from plaita.engine.frames import Frame
from plaita.engine.values import render
from plaita.node.basic import Node
from plaita.node.event_node import deadline, refuse, seconds_of

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink
    from plaita.engine.program import Eval

STRATEGIES = ("any", "all", "majority")
DAY_SECONDS = 86_400


class ApprovalNode(Node):
    """Opens a task for ``approvers`` (texts or expressions for texts or lists) and waits for their votes.

    ``approval_strategy``: ``any`` the first vote decides, ``all`` everybody must approve, ``majority`` more than half.
    ``form_fields`` describe a form. ``subscription_timeout`` (seconds, a day unless told otherwise) gives up.

    Result: the documented event state; ``event_data`` holds ``final_decision`` (``approved``/``rejected``),
    ``approved``, ``approval_details`` (the votes), ``form`` and ``comment`` of the deciding vote.
    """

    node_type: ClassVar[str] = "approval"
    node_name: ClassVar[str] = "Approval"
    is_suspending: ClassVar[bool] = True
    builtin: ClassVar[bool] = True

    approval_title: Any
    approval_content: Any = ""
    approvers: Any = []
    approval_type: Literal["manual", "auto"] = "manual"
    approval_strategy: str = "any"
    auto_escalation: bool = False
    escalation_timeout_hours: Any = 24
    escalation_approvers: list[Any] = []
    form_fields: Any = []
    allow_comments: bool = True
    require_comments: bool = False
    notification_config: dict[str, Any] = {}
    event_type: str = "approval_decision"
    event_filter: dict[str, Any] = {}
    subscription_timeout: Any = DAY_SECONDS

    @field_validator("approval_strategy")
    @classmethod
    def _strategy(cls, value: str) -> str:
        if value.lower() not in STRATEGIES:
            raise ValueError(f"{value!r} is none of {', '.join(STRATEGIES)}")
        return value.lower()

    def link(self, link: NodeLink) -> None:
        link.linking.waits.append(link.label)
        link.cn.waiting = ApprovalWait(
            self,
            link.value(self.approval_title, "approval_title"),
            link.value(self.approval_content, "approval_content"),
            link.value(self.approvers, "approvers"),
            link.value(self.form_fields, "form_fields"),
            seconds_of(link, self.subscription_timeout, "subscription_timeout"),
        )
        link.cn.step = steps.wait(link.cn)


class ApprovalWait:
    """The waiting half of ``approval``."""

    def __init__(
        self, node: ApprovalNode, title: Eval, content: Eval, approvers: Eval, form: Eval, timeout: Eval | None
    ) -> None:
        self.node, self.title, self.content = node, title, content
        self.approvers, self.form, self.timeout = approvers, form, timeout

    def spec(self, frame: Frame) -> WaitSpec:
        node, now = self.node, frame.run.now_ms
        task: dict[str, Json] = {
            "title": _text(self.title(frame)),
            "content": _text(self.content(frame)),
            "approvers": _people(node.id, self.approvers(frame)),
            "strategy": node.approval_strategy,
            "form": self.form(frame) or [],
            "allow_comments": node.allow_comments,
            "require_comments": node.require_comments,
        }
        pending: dict[str, Json] = {
            "event_type": node.event_type,
            "event_filter": node.event_filter,
            "is_async": True,
            "event_id": f"event_{node.id}_{now}",
            "status": "pending",
            "node_subtype": "approval",
            "service_config": self._service_config(frame, task, now),
        }
        due = deadline(node.id, frame, self.timeout)
        return WaitSpec("hand", pending, node.event_type, deadline_ms=due, task=task)

    def _service_config(self, frame: Frame, task: dict[str, Json], now: int) -> dict[str, Json]:
        node = self.node
        return {
            "type": "approval",
            "node_id": node.id,
            "execution_id": frame.run.execution_id,
            "flow_id": frame.flow_id,
            "event_type": node.event_type,
            "event_filter": node.event_filter,
            "approval_id": f"approval_{node.id}_{now}",
            "approval_config": {
                "title": task["title"],
                "content": task["content"],
                "type": node.approval_type,
                "created_time": now,
            },
            "approver_config": {
                "approvers": task["approvers"],
                "strategy": node.approval_strategy,
                "auto_escalation": node.auto_escalation,
                "escalation_timeout_hours": node.escalation_timeout_hours,
                "escalation_approvers": node.escalation_approvers,
            },
            "form_config": {
                "fields": task["form"],
                "allow_comments": node.allow_comments,
                "require_comments": node.require_comments,
            },
            "notification_config": node.notification_config,
        }

    def matches(self, pending: dict[str, Json], data: Json) -> bool:
        return True

    def resume(self, pending: dict[str, Json], kind: Literal["event", "timeout"], data: Json) -> Json:
        if kind == "timeout":
            return {**pending, "status": "timeout"}
        return {**pending, "status": "completed", "event_data": data}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else render(value)


def _people(node_id: str, value: Json) -> list[str]:
    people: list[str] = []
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, list):
            people += _people(node_id, entry)
        elif isinstance(entry, str) and entry:
            people.append(entry)
        elif entry is not None:
            raise refuse(node_id, "approval", f"an approver is {entry!r}, not a name")
    return list(dict.fromkeys(people))
