"""What an author says about failures of a node: ``errorHandler`` and ``timeoutHandler``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from plaita.base.duration import parse_duration_ms
from plaita.engine.program import ABORT, Handler
from plaita.node.spelling import either, spellings

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink

RETRIES_MAX = 10


class ErrorStrategy(StrEnum):
    """What follows when a node failed for good."""

    ABORT = "abort"
    CONTINUE = "continue"
    CONTINUE_WITH = "continue-with"


class ErrorHandler(BaseModel):
    """``abort`` fails the flow (with ``code`` and ``message`` if given), ``continue`` goes on with null,
    ``continue-with`` with the evaluated ``defaultValue``."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, defer_build=True)

    strategy: ErrorStrategy = ErrorStrategy.ABORT
    default_value: Any = Field(None, validation_alias=either("default_value"))
    error_code: int | str | None = Field(None, validation_alias=either("code", "error_code"))
    error_message: str | None = Field(None, validation_alias=either("message", "error_message"))

    @field_validator("strategy", mode="before")
    @classmethod
    def _spelling(cls, value: object) -> object:
        return value.replace("_", "-") if isinstance(value, str) else value


class Retry(BaseModel):
    """``attempts`` more runs; delays ``base * factor ** n`` up to ``cap`` (durations), up to ``jitter`` (0..1) more."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    attempts: int = Field(0, ge=0, le=RETRIES_MAX)
    base: int = 1000
    factor: float = Field(2.0, ge=1, le=100)
    cap: int = 30_000
    jitter: float = Field(0.0, ge=0, le=1)

    @field_validator("base", "cap", mode="before")
    @classmethod
    def _duration(cls, value: object) -> int:
        return parse_duration_ms(value)


class RecoverableErrorHandler(ErrorHandler):
    """An error handler that may run the node again first: ``retryTimes`` or the longer ``retry``."""

    retry_times: int = Field(0, le=RETRIES_MAX, validation_alias=either("retry_times"))
    retry: Retry | None = None


NO_ERROR_HANDLER = RecoverableErrorHandler()
NO_TIMEOUT_HANDLER = ErrorHandler()
HANDLER_KEYS = spellings(ErrorHandler)
RECOVERABLE_KEYS = spellings(RecoverableErrorHandler)
RETRY_KEYS = spellings(Retry)


def link_handler(link: NodeLink, handler: ErrorHandler, field: str) -> Handler:
    """The engine's form of a handler."""
    if handler is NO_ERROR_HANDLER or handler is NO_TIMEOUT_HANDLER:
        return ABORT
    retry = handler.retry if isinstance(handler, RecoverableErrorHandler) else None
    times = handler.retry_times if isinstance(handler, RecoverableErrorHandler) else 0
    retry = retry or Retry(attempts=max(0, times))
    default = None
    if handler.strategy is ErrorStrategy.CONTINUE_WITH:
        default = link.value(handler.default_value, f"{field}.defaultValue")
    return Handler(
        handler.strategy.value,
        default,
        handler.error_code,
        handler.error_message,
        retry.attempts,
        retry.base,
        retry.factor,
        retry.cap,
        retry.jitter,
    )
