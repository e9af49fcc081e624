"""Lease numbers: which ones hold together, and what follows from the lease alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DAY_MS: Final = 86_400_000
LEASE_MIN_MS: Final = 3_000


@dataclass(frozen=True, slots=True)
class LeasePlan:
    """How long a claim holds, how often it is renewed, which silence of the store counts as an outage.

    After a silence longer than ``gap_ms`` nobody takes over for ``grace_ms``.
    """

    lease_ms: int = 10_000
    renew_ms: int = 3_000
    gap_ms: int = 3_300
    grace_ms: int = 4_000


DEFAULT_LEASE: Final = LeasePlan()


def plan_lease(lease_ms: int) -> LeasePlan:
    """The other numbers in proportion to the lease: renewal 30 %, gap 33 %, grace 40 %."""
    return LeasePlan(lease_ms, lease_ms * 3 // 10, lease_ms * 33 // 100, lease_ms * 4 // 10)


def lease_issues(plan: LeasePlan) -> list[str]:
    """What is wrong with a plan, in words; empty when a healthy holder can never be taken over."""
    issues = []
    if plan.lease_ms < LEASE_MIN_MS:
        issues.append(f"the lease is {plan.lease_ms} ms, it must be at least {LEASE_MIN_MS} ms")
    if plan.lease_ms <= 2 * plan.renew_ms + plan.gap_ms:
        floor = 2 * plan.renew_ms + plan.gap_ms
        issues.append(f"the lease is {plan.lease_ms} ms, it must be longer than 2 * renewal + gap = {floor} ms")
    if plan.grace_ms <= plan.renew_ms:
        issues.append(f"the grace is {plan.grace_ms} ms, it must be longer than the renewal of {plan.renew_ms} ms")
    return issues
