"""``Node``: what every node type shares, and the base of custom nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import AliasGenerator, ConfigDict, Field, field_validator

from plaita.base.duration import parse_duration_ms
from plaita.base.json import Json
from plaita.base.limits import NODE_TIMEOUT_MS_MAX
from plaita.engine import steps
from plaita.node.computed import is_computed
from plaita.node.editing import Editable
from plaita.node.handlers import (
    NO_ERROR_HANDLER,
    NO_TIMEOUT_HANDLER,
    ErrorHandler,
    RecoverableErrorHandler,
    link_handler,
)
from plaita.node.spelling import either

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink

OWN_WAITING = ("execute", "arun", "resume", "on_event", "on_timeout", "on_cancel", "on_error")
"""Methods with which a node would conduct its own wait."""
BASE_FIELDS = frozenset(
    {"id", "name", "desc", "next", "timeout", "timeout_handler", "error_handler", "source_line", "on_doubt"}
)


class Node(Editable):
    """A node of a flow.

    A custom node subclasses it, sets ``node_type``, types its fields and writes ``execute(self, execution)`` or
    ``async arun(self, execution)``. ``execution`` is a read-only view: ``execution.evaluate(self.field)`` evaluates a
    field, ``execution.idempotency_key`` stays the same over retries and restarts. The result must be JSON. The node
    may run more than once for one visit when its process dies; it never runs again after its result is stored.

    ``provides`` names the roots (without ``$``) that the node sets with ``execution.set_state``; ``LEGACY_KEYS`` keys
    of its document that are no fields and no mistakes. A node that waits subclasses ``EventNode``.
    """

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
        arbitrary_types_allowed=True,
        protected_namespaces=(),
        defer_build=True,
        validate_assignment=True,
        alias_generator=AliasGenerator(validation_alias=lambda name: either(name)),
    )

    node_type: ClassVar[str] = ""
    node_name: ClassVar[str] = ""
    branching: ClassVar[bool] = False
    is_suspending: ClassVar[bool] = False
    async_node: ClassVar[bool] = False
    dry_run_safe: ClassVar[bool | None] = None
    provides: ClassVar[frozenset[str] | None] = None
    builtin: ClassVar[bool] = False
    LEGACY_KEYS: ClassVar[frozenset[str]] = frozenset()

    id: str
    name: str | None = None
    desc: str | None = None
    output: Any = None
    next: Any = None
    timeout: Any = ""
    source_line: int | None = None
    on_doubt: str = "rerun"
    timeout_handler: ErrorHandler = Field(default_factory=lambda: NO_TIMEOUT_HANDLER)
    error_handler: RecoverableErrorHandler = Field(default_factory=lambda: NO_ERROR_HANDLER)

    @field_validator("timeout", mode="before")
    @classmethod
    def _timeout(cls, value: object) -> object:
        if value is None or value == "" or is_computed(value):
            return "" if value is None else value
        if parse_duration_ms(value) > NODE_TIMEOUT_MS_MAX:
            raise ValueError(f"{value!r} is more than 24 hours")
        return value

    @field_validator("on_doubt")
    @classmethod
    def _doubt(cls, value: str) -> str:
        if value not in ("rerun", "block"):
            raise ValueError(f"{value!r} is neither 'rerun' nor 'block'")
        return value

    def targets(self) -> Iterator[tuple[str, Any]]:
        """Fields that name nodes to go to, with the names."""
        if self.next is not None:
            yield "next", self.next

    def sub_flows(self) -> Iterator[tuple[str, Any, str | None]]:
        """Fields that hold sub-flows: field, flow, and the key that addresses call it (``None``: the only one)."""
        return iter(())

    def link(self, link: NodeLink) -> None:
        """Give the compiled node its step. The default performs ``execute``/``arun`` outside the machine."""
        link.linking.calls = True
        sound = [f for f in type(self).model_fields if f not in BASE_FIELDS and self._look_at(link, f)]
        values = {field: value for field in sound if isinstance(value := getattr(self, field), str | list | dict)}
        if values:
            link.cn.arguments = link.value(values, "")
        link.cn.step = steps.call(link.cn)

    def _look_at(self, link: NodeLink, field: str) -> bool:
        """Can the field be evaluated? A custom one may hold text that only looks like an expression: a warning."""
        before = len(link.linking.issues)
        value = getattr(self, field)
        if isinstance(value, str | list | dict):
            link.value(value, field)
        found = link.linking.issues[before:]
        del link.linking.issues[before:]
        for issue in found:
            text = f"{issue.message}; evaluating this field would fail"
            link.report(issue.code, field, text, hint=issue.hint, severity="warning", column=issue.column)
        return not any(issue.severity == "error" for issue in found)

    def link_common(self, link: NodeLink) -> None:
        """Successor, handlers and timeout, the same for every type."""
        self._check(link)
        cn = link.cn
        cn.branching = self.branching
        if not self.branching:
            self.link_successor(link)
        if self.error_handler is not NO_ERROR_HANDLER:
            cn.on_error = link_handler(link, self.error_handler, "error_handler")
        if self.timeout_handler is not NO_TIMEOUT_HANDLER:
            cn.on_timeout = link_handler(link, self.timeout_handler, "timeout_handler")
        if self.timeout not in ("", None):
            computed = is_computed(self.timeout)
            cn.timeout = link.value(self.timeout, "timeout") if computed else parse_duration_ms(self.timeout)

    def link_successor(self, link: NodeLink) -> None:
        """The node after this one; without ``next`` a place that fails when it is reached."""
        cn = link.cn
        cn.next = steps.dead_end(cn) if self.next is None else link.target(self.next, "next")

    def _check(self, link: NodeLink) -> None:
        """What the author's ``validate`` says is a warning; a wait of its own is an error."""
        cls = type(self)
        if cls.validate is not Node.validate:
            try:
                self.validate()
            except Exception as e:  # noqa: BLE001 - foreign code
                text = f"node {self.id!r} ({self.node_type}): {str(e) or type(e).__name__}"
                link.report("node_invalid", "", text, severity="warning")
        if cls.is_suspending:
            own = [name for name in OWN_WAITING if getattr(cls, name, None) is not getattr(Node, name, None)]
            if own or cls.link is Node.link:
                text = f"node {self.id!r} ({self.node_type}) conducts its own wait: {', '.join(own) or 'is_suspending'}"
                hint = "do the work in an ordinary node, with an `event` node behind it; or subclass EventNode"
                link.report("custom_wait", "", text, hint=f"{hint}, with fields only")

    def validate(self) -> None:  # type: ignore[override]
        """Look at the node when its flow is loaded; what is raised becomes a warning. Overridden by custom nodes."""

    def node_result_payload(self) -> dict[str, Any] | None:
        """What the stored result carries besides the result itself, which is then its key ``data``."""
        return None

    def _validate_output(self, result: Any) -> None:
        """Look at a result before it is stored; what is raised fails the node and may be retried. Overridden too."""

    def shown(self, arguments: Json) -> Json:
        """The evaluated fields as people may see them in the history; a node with secrets in its fields masks them."""
        return arguments

    def execute(self, execution: Any) -> Json:
        """Perform the node; return its result as JSON. Overridden by custom nodes (or ``arun``)."""
        raise NotImplementedError(f"node type {self.node_type!r} has neither execute nor arun")
