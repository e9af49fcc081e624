"""Whether a failed node gets another attempt, and the pause before it.

A handler grants the retries its node declares; a worker lets calls be driven again whose failure would end the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plaita.engine.failure import Failure
from plaita.engine.frames import BACKOFF, Frame, node_at
from plaita.engine.program import Handler
from plaita.policy.retry import Backoff, RetryAt, decide_redrive, decide_retry

if TYPE_CHECKING:
    from plaita.engine.machine import Run


def retry_of(run: Run, frame: Frame, handler: Handler, failure: Failure) -> RetryAt | None:
    """The retry that a handler grants, if any. Changes nothing."""
    if not failure.retryable or frame.attempt >= handler.retries:
        return None
    decision = decide_retry(
        Backoff(handler.base_ms, handler.factor, handler.cap_ms, handler.jitter),
        failed=frame.attempt + 1,
        retries_max=handler.retries,
        now_ms=run.now_ms,
        dice=run.dice,
        until_ms=_budget_end(run, frame),
    )
    return decision if isinstance(decision, RetryAt) else None


def redrive(run: Run, frame: Frame, failure: Failure) -> bool:
    """Put a call that would end the run into backoff, as long as policy allows."""
    if not run.conditions.redrive or not failure.retryable or node_at(frame).on_error.retries:
        return False
    decision = decide_redrive(
        failed=frame.attempt + 1,
        redrives=run.redrives,
        now_ms=run.now_ms,
        dice=run.dice,
        until_ms=_budget_end(run, frame),
        attempts_max=run.conditions.attempts_max,
    )
    if not isinstance(decision, RetryAt):
        return False
    run.redrives += 1
    back_off(run, frame, decision.at_ms, failure)
    return True


def back_off(run: Run, frame: Frame, at_ms: int, failure: Failure) -> None:
    """The node under the cursor waits for its next attempt."""
    frame.attempt += 1
    frame.state, frame.retry_at, frame.acc = BACKOFF, at_ms, None
    run.arm(frame, at_ms)
    run.effects.retries.append((frame.where(node_at(frame).id), at_ms, failure))


def _budget_end(run: Run, frame: Frame) -> int | None:
    """The earliest end of the time that a frame, the hosts above it and the run have left."""
    times: list[int | None] = [run.deadline_ms]
    at: Frame | None = frame
    while at is not None:
        times += (at.due, at.limit)
        at = at.host
    return min((t for t in times if t is not None), default=None)
