"""Every error the system raises on purpose.

    PlaitaError
    ├── FlowLoadError              PLT-E01  load_error / expression_error: the document cannot run
    ├── InputError                 PLT-E02  input_error: a value is not JSON or violates its type
    ├── WaitNotPossible            PLT-E03  wait_not_possible: a wait in a plain run
    ├── NotFound                   PLT-E04  not_found
    ├── Conflict                   PLT-E05  conflict
    ├── Unavailable                PLT-E06  unavailable: the store cannot be used
    ├── ResumeRefused              PLT-E07  resume_refused: the wait is gone or answered
    ├── PolicyDenied               PLT-E09  policy_denied: possible here, and not allowed
    ├── NotSupported               PLT-E08  not_supported
    │   └── NotInRelease           PLT-E10  a documented name that comes with a later release
    ├── EventError                 PLT-E40  input_error: an event or a handler that makes no sense
    │   ├── EventNotFoundError     PLT-E41  not_found
    │   ├── EventTimeoutError      PLT-E42  timeout: nobody published the event in time
    │   └── EventStorageError      PLT-E43  unavailable
    ├── TenantContextMissingError  PLT-E13  input_error: nobody said for which tenant
    ├── CrashLoop                  PLT-E14  unavailable: worker processes end right after their start
    ├── EvaluationError            PLT-E11  node_error: an expression failed while it ran
    ├── ExpressionSyntaxError      PLT-E12  expression_error: a text is no expression
    └── FlowExecutionException     PLT-E20  how a flow ended; ``code`` is the documented number
        ├── NodeNotFoundError      PLT-E21
        ├── FlowStartMissingError  PLT-E22
        ├── NodeExecutionError     PLT-E23
        ├── NodeTimeoutError       PLT-E24
        ├── FlowTimeoutError       PLT-E25
        │   └── ExecutionDeadlineError  PLT-E26
        ├── FlowErrorException     PLT-E27
        │   └── ResumeError        PLT-E30
        │       └── ResumeGuardError    PLT-E31
        ├── FlowCancelledException PLT-E28
        ├── ErrorResultException   PLT-E29
        └── StateSnapshotError     PLT-E32

Each class carries a stable ``reference`` (a page under ``docs/reference/errors``) and each error a public ``kind``
(one of ``KINDS``). All survive pickling. The two of the expression language stand beside it, in
``plaita.engine.expression.errors``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from plaita.base.issues import Issue, with_long_hints_once

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS: Final = (
    "load_error", "expression_error", "input_error", "node_error", "timeout", "no_branch_matched", "error_result",
    "iteration_limit", "depth_limit", "policy_denied", "invalid_cron", "cancelled", "wait_not_possible",
    "resume_refused", "stale", "not_found", "conflict", "unavailable", "not_supported",
)  # fmt: skip
"""The public vocabulary, the same in every release; not every word has an error in this one."""


class PlaitaError(Exception):
    """Base of all intentional errors. ``kind`` says what sort, ``hint`` what to do next (may be empty)."""

    reference: ClassVar[str]
    kind: str = "node_error"
    hint: str = ""


class FlowLoadError(PlaitaError, ValueError):
    """A flow document cannot run; ``issues`` holds everything that was found, errors first."""

    reference = "PLT-E01"

    def __init__(self, issues: Sequence[Issue], source: str = "") -> None:
        super().__init__(tuple(issues), source)
        self.issues, self.source = tuple(issues), source
        errors = [i for i in self.issues if i.severity == "error"]
        expression = bool(errors) and all(i.code.startswith("expression") for i in errors)
        self.kind = "expression_error" if expression else "load_error"

    def __str__(self) -> str:
        errors = [i for i in self.issues if i.severity == "error"]
        head = f"{self.source or 'the flow'} cannot be loaded: {len(errors)} error{'s' if len(errors) != 1 else ''}"
        return "\n".join([head, *(f"  {issue}" for issue in with_long_hints_once(self.issues))])


class InputError(PlaitaError, ValueError):
    """A value handed in is not JSON or does not fit its declared type. ``path`` is a JSON path such as ``$.a[0]``."""

    reference = "PLT-E02"
    kind = "input_error"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class _Worded(PlaitaError):
    """An error whose text is written where it is raised: ``message`` says what happened, ``hint`` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message, self.hint = message, hint

    def __str__(self) -> str:
        return self.message


class WaitNotPossible(_Worded):
    """A flow reached a waiting node in a run that is not durable."""

    reference = "PLT-E03"
    kind = "wait_not_possible"


class NotFound(_Worded):
    """No such flow, execution, task or file."""

    reference = "PLT-E04"
    kind = "not_found"


class Conflict(_Worded):
    """The request contradicts what is stored, for example one id with two payloads."""

    reference = "PLT-E05"
    kind = "conflict"


class Unavailable(_Worded):
    """The store cannot be used: locked, read-only, not ours, from a newer version, not reachable."""

    reference = "PLT-E06"
    kind = "unavailable"


class ResumeRefused(_Worded):
    """A wait cannot be answered: it is gone, answered, or the answer does not fit."""

    reference = "PLT-E07"
    kind = "resume_refused"


class NotSupported(_Worded):
    """Asked for something this installation does not offer."""

    reference = "PLT-E08"
    kind = "not_supported"


class PolicyDenied(_Worded):
    """A policy forbids it, for example an address that a node must not reach. Trying again does not help."""

    reference = "PLT-E09"
    kind = "policy_denied"


class NotInRelease(NotSupported, ImportError):
    """A documented name that this release does not have yet; it is an ``ImportError`` too."""

    reference = "PLT-E10"


class TenantContextMissingError(_Worded):
    """With several tenants nothing is written before it is said for which."""

    reference = "PLT-E13"
    kind = "input_error"


class CrashLoop(_Worded):
    """Worker processes end right after their start, again and again; starting more of them is no use."""

    reference = "PLT-E14"
    kind = "unavailable"


class FlowExecutionException(PlaitaError, RuntimeError):
    """How it ended. ``code`` is the documented number or the author's own; ``path`` names nodes, outermost first."""

    reference = "PLT-E20"
    default_code: ClassVar[int] = -500
    default_type: ClassVar[str] = "flow_error"

    def __init__(
        self,
        code: int | str | None = None,
        message: str = "",
        error_type: str | None = None,
        node: object = None,
        source_line: int | None = None,
        *,
        kind: str = "node_error",
        path: Sequence[str | int] = (),
    ) -> None:
        super().__init__(code, message, error_type, node, source_line)
        self.code = self.default_code if code is None else code
        self.message = message
        self.error_type = error_type or self.default_type
        self.node, self.source_line = node, source_line
        self.kind, self.path = kind, tuple(path)

    def __reduce__(self) -> tuple[object, ...]:
        names = ("code", "message", "error_type", "node", "source_line", "kind", "path")
        return _again, (type(self), {name: getattr(self, name) for name in names})

    def __str__(self) -> str:
        return self.message


def _again(cls: type[FlowExecutionException], fields: dict[str, Any]) -> FlowExecutionException:
    return cls(**fields)


class NodeNotFoundError(FlowExecutionException):
    """A branching node led to an id that the flow does not have."""

    reference = "PLT-E21"
    default_type = "node_not_found"


class FlowStartMissingError(FlowExecutionException):
    """A flow without a start node. Such a flow is refused at load; the name is kept for code that catches it."""

    reference = "PLT-E22"
    default_type = "node_not_found"

    def __init__(self, message: str = "the flow has no start node", node: object = None, **more: Any) -> None:
        super().__init__(message=message, node=node, **more)


class NodeExecutionError(FlowExecutionException):
    """A node failed and its handler says abort."""

    reference = "PLT-E23"
    default_code = -520
    default_type = "node_error"

    def __init__(self, message: str = "", node: object = None, code: int | str | None = None, **more: Any) -> None:
        super().__init__(code, message, node=node, **more)


class NodeTimeoutError(FlowExecutionException):
    """A node exceeded its own timeout."""

    reference = "PLT-E24"
    default_code = -1
    default_type = "node_error"


class FlowTimeoutError(FlowExecutionException):
    """A sub-flow exceeded its own timeout."""

    reference = "PLT-E25"
    default_code = -1


class ExecutionDeadlineError(FlowTimeoutError):
    """The execution exceeded its budget: ``timeout`` of the flow, or the active time of a flow without one."""

    reference = "PLT-E26"


class FlowErrorException(FlowExecutionException):
    """The flow came to a place after which nothing follows: no branch matched, or there is no next node."""

    reference = "PLT-E27"


class FlowCancelledException(FlowExecutionException):
    """The execution was cancelled."""

    reference = "PLT-E28"
    default_code = -4


class ErrorResultException(FlowExecutionException):
    """The flow ended at an ``end`` node with ``resultType: error``; ``code`` is the author's, a number or a text."""

    reference = "PLT-E29"
    default_type = "error_result"


class ResumeError(FlowErrorException):
    """A saved execution could not go on: there is no further step, or the answer could not be used."""

    reference = "PLT-E30"


class ResumeGuardError(ResumeError):
    """The answer does not belong to the wait. Nothing was changed: the saved context is still good."""

    reference = "PLT-E31"


class StateSnapshotError(FlowExecutionException):
    """State that cannot be copied. State is JSON and always can be; the name is kept for code that catches it."""

    reference = "PLT-E32"


class EventError(_Worded):
    """An event, a subscription or a handler that makes no sense; base of what an event bus raises."""

    reference = "PLT-E40"
    kind = "input_error"


class EventNotFoundError(EventError):
    """The bus keeps no event of that id, or not any more."""

    reference = "PLT-E41"
    kind = "not_found"

    def __init__(self, event_id: str) -> None:
        super().__init__(f"there is no event {event_id!r}")
        self.event_id = event_id

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.event_id,)


class EventTimeoutError(EventError):
    """Nobody published the event in time. ``timeout`` is in seconds."""

    reference = "PLT-E42"
    kind = "timeout"

    def __init__(self, event_type: str, timeout: float) -> None:
        text = f"no event {event_type!r} within {timeout:g} s"
        super().__init__(text, "wait before it is published: what was published earlier does not count")
        self.event_type, self.timeout = event_type, timeout

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.event_type, self.timeout)


class EventStorageError(EventError):
    """Events or subscriptions cannot be kept."""

    reference = "PLT-E43"
    kind = "unavailable"
