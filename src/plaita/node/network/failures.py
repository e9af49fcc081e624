"""How an ``http`` node fails. The numbers are the documented ones."""

from __future__ import annotations

from typing import Final

from plaita.engine.failure import Failure, FailureRaised

CANNOT_BUILD: Final = 1001
"""The fields make no request. Trying again gives the same."""
SEND_FAILED: Final = 1002
"""No whole answer arrived, or a policy refused the way to it."""
ANSWER_REFUSED: Final = 1003
"""An answer arrived that the node does not accept."""


def cannot_build(what: str) -> FailureRaised:
    """The fields make no request."""
    return FailureRaised(Failure("node_error", CANNOT_BUILD, what))


def send_failed(what: str, *, retryable: bool = True) -> FailureRaised:
    """The answer did not arrive. The other side may have acted all the same."""
    return FailureRaised(Failure("node_error", SEND_FAILED, what, retryable=retryable))


def denied(what: str) -> FailureRaised:
    """A policy refused it; nothing was sent there."""
    return FailureRaised(Failure("policy_denied", SEND_FAILED, what))


def answer_refused(what: str, *, retryable: bool = False) -> FailureRaised:
    """The answer is too large, cannot be decoded, or has a status of ``failOn``."""
    return FailureRaised(Failure("node_error", ANSWER_REFUSED, what, retryable=retryable))
