"""The names of ``plaita.core.errors`` under their older path; asking for one warns."""

from __future__ import annotations

from plaita.base.moved import moved

_NAMES = frozenset((
    "ErrorHandler", "ErrorResultException", "ErrorStrategy", "ExecutionDeadlineError", "FlowErrorException",
    "FlowErrorType", "FlowExecutionException", "FlowResultError", "FlowStartMissingError", "FlowTimeoutError",
    "NodeException", "NodeExecutionError", "NodeNotFoundError", "NodeTimeoutError", "RecoverableErrorHandler",
    "ResumeError", "ResumeGuardError", "ResumeType", "StateSnapshotError",
))  # fmt: skip

__getattr__ = moved("plaita.errors", "plaita.core.errors", _NAMES)


def __dir__() -> list[str]:
    return sorted(_NAMES)
