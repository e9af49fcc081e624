"""Leases of executions as programs see them. A worker holds its own inside the store; the Redis one comes later."""

from __future__ import annotations

from typing import Final, Protocol

from plaita.base.absent import REDIS, absent
from plaita.base.clock import new_id

DEFAULT_KEY_PREFIX: Final = "plaita:execution:lease:"
DEFAULT_LEASE_TTL_SECONDS: Final = 120

__getattr__ = absent("plaita.server.execution_lease", RedisExecutionLease=REDIS)


class ExecutionLeaseError(RuntimeError):
    """Another process holds the execution."""


class ExecutionLease(Protocol):
    """One holder at a time for an execution."""

    def try_acquire(self, execution_id: str, holder: str, ttl_seconds: int) -> bool:
        """Become the holder; ``False`` while somebody else is."""

    def renew(self, execution_id: str, holder: str, ttl_seconds: int) -> bool:
        """Stay the holder; ``False`` when one is it no more."""

    def release(self, execution_id: str, holder: str) -> bool:
        """Be the holder no more; ``False`` when one was not."""


class NullExecutionLease:
    """A lease for programs of one process: always granted, never lost."""

    def try_acquire(self, execution_id: str, holder: str, ttl_seconds: int) -> bool:
        return True

    def renew(self, execution_id: str, holder: str, ttl_seconds: int) -> bool:
        return True

    def release(self, execution_id: str, holder: str) -> bool:
        return True

    def get_holder(self, execution_id: str) -> str | None:
        """Nobody in particular."""
        return None


def new_holder_token(prefix: str = "worker", instance_id: str | None = None) -> str:
    """A name for one holder: ``prefix:instance:random``, without the instance when there is none."""
    return ":".join(part for part in (prefix, instance_id, new_id()) if part)


def holder_instance_id(lease_value: str | None) -> str | None:
    """The instance in the name of a holder, ``None`` when it names none."""
    parts = (lease_value or "").split(":")
    return parts[1] if len(parts) == 3 else None
