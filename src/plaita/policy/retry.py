"""When does a failed node run again? Time and dice are arguments."""

from __future__ import annotations

from dataclasses import dataclass

ATTEMPTS_MAX = 5
"""Attempts of a node in all, for an error that would end the run."""
REDRIVES_MAX = 100
"""Re-drives in the life of a run."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delay after failure n: ``base_ms * factor ** (n - 1)``, at most ``cap_ms``, up to ``jitter`` (0..1) more."""

    base_ms: int = 1000
    factor: float = 2.0
    cap_ms: int = 30_000
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class RetryAt:
    at_ms: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    reason: str


REDRIVE = Backoff(jitter=0.2)


def delay_ms(backoff: Backoff, failed: int, dice: float) -> int:
    """Milliseconds to wait after failure number ``failed`` (1-based); ``dice`` is in [0, 1)."""
    raw = min(backoff.base_ms * backoff.factor ** min(failed - 1, 64), backoff.cap_ms)
    return int(raw * (1 + backoff.jitter * dice))


def decide_retry(
    backoff: Backoff, *, failed: int, retries_max: int, now_ms: int, dice: float, until_ms: int | None
) -> RetryAt | GiveUp:
    """A declared retry. ``until_ms``: end of the budget; no attempt is planned at or after it."""
    if failed > retries_max:
        return GiveUp(f"attempt {failed} failed")
    at_ms = now_ms + delay_ms(backoff, failed, dice)
    if until_ms is not None and at_ms >= until_ms:
        return GiveUp("the time budget is spent")
    return RetryAt(at_ms)


def decide_redrive(
    *, failed: int, redrives: int, now_ms: int, dice: float, until_ms: int | None, attempts_max: int = ATTEMPTS_MAX
) -> RetryAt | GiveUp:
    """A retry nobody declared, for an error that would end a durable run."""
    if redrives >= REDRIVES_MAX:
        return GiveUp(f"{REDRIVES_MAX} re-drives of this execution are used up")
    return decide_retry(
        REDRIVE, failed=failed, retries_max=attempts_max - 1, now_ms=now_ms, dice=dice, until_ms=until_ms
    )
