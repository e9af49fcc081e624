"""What a ``FlowWorker`` raises besides the errors of flows."""

from __future__ import annotations

from plaita.base.errors import Conflict, NotFound, NotSupported, ResumeRefused


class ExecutionUnknown(NotFound, ValueError):
    """There is no such execution, or no such flow."""


class ExecutionIdConflictError(Conflict, ValueError):
    """The id belongs to an execution of another flow."""


class FlowHashMismatchError(Conflict, ValueError):
    """The definition is not the one with which the execution began."""


class ResumeProtocolError(ResumeRefused, RuntimeError):
    """The answer does not belong to what the execution waits for; nothing was changed."""


class NodeFailureTerminalizedError(RuntimeError, ValueError):
    """The execution ended in an error, which is the ``__cause__``; ``resume_flow(…, "retry")`` opens it again."""


class StorageForeign(NotSupported, TypeError):
    """A worker moves executions of the stores that come with this package."""
