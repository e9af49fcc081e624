"""The documented error classes, and the two that nodes raise."""

from __future__ import annotations

from enum import StrEnum

from plaita.base.errors import (
    ErrorResultException,
    ExecutionDeadlineError,
    FlowCancelledException,
    FlowErrorException,
    FlowExecutionException,
    FlowLoadError,
    FlowStartMissingError,
    FlowTimeoutError,
    InputError,
    NodeExecutionError,
    NodeNotFoundError,
    NodeTimeoutError,
    PlaitaError,
    ResumeError,
    ResumeGuardError,
    StateSnapshotError,
    WaitNotPossible,
)
from plaita.engine.failure import Failure
from plaita.node.handlers import ErrorHandler, ErrorStrategy, RecoverableErrorHandler

__all__ = [
    "ErrorHandler", "ErrorResultException", "ErrorStrategy", "ExecutionDeadlineError", "FlowCancelledException",
    "FlowErrorException", "FlowErrorType", "FlowExecutionException", "FlowLoadError", "FlowResultError",
    "FlowStartMissingError", "FlowTimeoutError", "InputError", "NodeException", "NodeExecutionError",
    "NodeNotFoundError", "NodeTimeoutError", "PlaitaError", "RecoverableErrorHandler", "ResumeError",
    "ResumeGuardError", "ResumeType", "StateSnapshotError", "WaitNotPossible", "exception_of",
]  # fmt: skip


class FlowErrorType(StrEnum):
    """The documented words of ``error_type``."""

    NODE_ERROR = "node_error"
    FLOW_ERROR = "flow_error"
    ERROR_RESULT = "error_result"
    INVALID_CALLBACK = "invalid_callback"
    EXECUTION_NOT_FOUND = "execution_not_found"
    NODE_NOT_FOUND = "node_not_found"
    INVALID_NODE_TYPE = "invalid_node_type"
    EXECUTION_TIMEOUT = "execution_timeout"
    CALLBACK_TIMEOUT = "callback_timeout"


class ResumeType(StrEnum):
    """How ``run_distributed`` goes on: take the next node, or answer the one that waits."""

    CONTINUE = "continue"
    RETRY = "retry"
    CANCEL = "cancel"
    TIMEOUT = "timeout"
    EVENT = "event"


class FlowResultError(RuntimeError):
    """Raised by a node to end its flow with a business error; handlers of the node itself do not catch it."""

    def __init__(self, code: int | str | None = None, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code, self.message = -500 if code is None else code, message or ""

    def __str__(self) -> str:
        return self.message


class NodeException(RuntimeError):
    """Raised by a node with a code of its own."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(code, message)
        self.code, self.message = code, message

    def __str__(self) -> str:
        return self.message


_BY_KIND: dict[str, type[FlowExecutionException]] = {
    "error_result": ErrorResultException,
    "cancelled": FlowCancelledException,
}


def exception_of(failure: Failure) -> PlaitaError:
    """The documented exception of a failure; its ``__cause__`` is what the node raised or the failure it replaced."""
    error: PlaitaError
    if failure.kind == "wait_not_possible":
        hint = "start it durably: plaita run FLOW, or Runtime.open().start(…)"
        error = WaitNotPossible(f"{failure.message}; {hint}", hint)
    else:
        cls = _BY_KIND.get(failure.kind) or _class_of(failure)
        error = cls(
            code=failure.code,
            message=failure.message,
            error_type=failure.error_type,
            kind=failure.kind,
            path=failure.path,
        )
    cause = failure.origin
    if cause is None and failure.cause is not None:
        cause = exception_of(failure.cause)
    error.__cause__ = cause
    return error


def _class_of(failure: Failure) -> type[FlowExecutionException]:
    if failure.kind == "timeout":
        if failure.final:
            return ExecutionDeadlineError
        return NodeTimeoutError if failure.error_type == "node_error" else FlowTimeoutError
    if failure.kind == "no_branch_matched":
        return NodeNotFoundError if failure.error_type == "node_not_found" else FlowErrorException
    return NodeExecutionError
