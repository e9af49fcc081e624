"""``approval``: waits for the votes of people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import TypeAdapter, ValidationInfo, field_validator

from plaita.base.json import Json
from plaita.engine import steps
from plaita.engine.effects import WaitSpec
from plaita.engine.frames import Frame
from plaita.engine.values import render
from plaita.node.basic import Node
from plaita.node.computed import is_computed
from plaita.node.event_node import RETRY_CONFIG, deadline, limit, refuse, seconds_of

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink
    from plaita.engine.program import Eval

WORDS: Final = {"approval_type": ("manual", "auto"), "approval_strategy": ("any", "all", "majority")}
FLAGS: Final = ("auto_escalation", "allow_comments", "require_comments")
EVALUATED: Final = (
    "approval_title", "approval_content", "approvers", *WORDS, *FLAGS, "escalation_timeout_hours",
    "escalation_approvers", "form_fields", "notification_config", "event_filter",
)  # fmt: skip
EVENT_TYPE: Final = "approval_decision"
DAY_SECONDS: Final = 86_400
_FLAG: Final = TypeAdapter(bool)


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
    approval_type: Any = "manual"
    approval_strategy: Any = "any"
    auto_escalation: Any = False
    escalation_timeout_hours: Any = 24
    escalation_approvers: Any = []
    form_fields: Any = []
    allow_comments: Any = True
    require_comments: Any = False
    notification_config: Any = {}
    event_type: str = EVENT_TYPE
    event_filter: Any = {}
    subscription_timeout: Any = DAY_SECONDS

    @field_validator("approval_type", "approval_strategy")
    @classmethod
    def _word(cls, value: Any, info: ValidationInfo) -> Any:
        return value if is_computed(value) else _word(str(info.field_name), value)

    @field_validator("auto_escalation", "allow_comments", "require_comments")
    @classmethod
    def _flag(cls, value: Any) -> Any:
        return value if is_computed(value) else _FLAG.validate_python(value)

    @field_validator("event_type")
    @classmethod
    def _event_type(cls, value: str) -> str:
        """Decisions come as events of one type, whatever the document says."""
        return EVENT_TYPE

    def link(self, link: NodeLink) -> None:
        link.linking.waits.append(link.label)
        values = {field: link.value(getattr(self, field), field) for field in EVALUATED}
        timeout = seconds_of(link, self.subscription_timeout, "subscription_timeout", limit)
        link.cn.waiting = ApprovalWait(self, values, timeout)
        link.cn.step = steps.wait(link.cn)


def _word(field: str, value: Json) -> str:
    """A word of a field, in lower case. Raises ``ValueError``."""
    word = value.lower() if isinstance(value, str) else ""
    if word not in WORDS[field]:
        raise ValueError(f"{value!r} is none of {', '.join(WORDS[field])}")
    return word


class ApprovalWait:
    """The waiting half of ``approval``."""

    def __init__(self, node: ApprovalNode, values: Mapping[str, Eval], timeout: Eval | None) -> None:
        self.node, self.values, self.timeout = node, values, timeout

    def spec(self, frame: Frame) -> WaitSpec:
        node, now = self.node, frame.run.now_ms
        given = self._given(frame)
        task: dict[str, Json] = {
            "title": _text(given["approval_title"]),
            "content": _text(given["approval_content"]),
            "approvers": _people(node.id, given["approvers"]),
            "strategy": given["approval_strategy"],
            "form": given["form_fields"] or [],
            "allow_comments": given["allow_comments"],
            "require_comments": given["require_comments"],
        }
        pending: dict[str, Json] = {
            "event_type": node.event_type,
            "event_filter": given["event_filter"],
            "is_async": True,
            "event_id": f"event_{node.id}_{now}",
            "status": "pending",
            "node_subtype": "approval",
            "service_config": self._service_config(frame, task, given),
        }
        due = deadline(node.id, frame, self.timeout)
        return WaitSpec("hand", pending, node.event_type, deadline_ms=due, task=task)

    def _given(self, frame: Frame) -> dict[str, Json]:
        """The evaluated fields, those with a vocabulary checked."""
        given = {field: value(frame) for field, value in self.values.items()}
        for field in FLAGS:
            if not isinstance(given[field], bool):
                raise refuse(self.node.id, "approval", f"{field}: {given[field]!r} is neither true nor false")
        for field in WORDS:
            try:
                given[field] = _word(field, given[field])
            except ValueError as e:
                raise refuse(self.node.id, "approval", f"{field}: {e}") from None
        return given

    def _service_config(self, frame: Frame, task: dict[str, Json], given: dict[str, Json]) -> dict[str, Json]:
        node, now = self.node, frame.run.now_ms
        return {
            "type": "approval",
            "node_id": node.id,
            "execution_id": frame.run.execution_id,
            "flow_id": frame.flow_id,
            "event_type": node.event_type,
            "event_filter": given["event_filter"],
            "retry_config": RETRY_CONFIG,
            "approval_id": f"approval_{node.id}_{now}",
            "approval_config": {
                "title": task["title"],
                "content": task["content"],
                "type": given["approval_type"],
                "created_time": now,
            },
            "approver_config": {
                "approvers": task["approvers"],
                "strategy": task["strategy"],
                "auto_escalation": given["auto_escalation"],
                "escalation_timeout_hours": given["escalation_timeout_hours"],
                "escalation_approvers": _people(node.id, given["escalation_approvers"]),
            },
            "form_config": {
                "fields": task["form"],
                "allow_comments": task["allow_comments"],
                "require_comments": task["require_comments"],
            },
            "notification_config": given["notification_config"],
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
