"""Lease numbers: what follows from the lease alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LeasePlan:
    """How long a claim holds, and which silence of the store counts as an outage.

    After a silence longer than ``gap_ms`` nobody takes over for ``grace_ms``: time for a holder, which renews at least
    three times a lease, to say that it is alive.
    """

    lease_ms: int = 10_000
    gap_ms: int = 3_300
    grace_ms: int = 4_000


DEFAULT_LEASE: Final = LeasePlan()


def plan_lease(lease_ms: int) -> LeasePlan:
    """The other numbers in proportion to the lease: gap 33 %, grace 40 %."""
    return LeasePlan(lease_ms, lease_ms * 33 // 100, lease_ms * 4 // 10)
