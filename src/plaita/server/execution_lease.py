"""Leases of executions as programs see them. A worker holds its own inside the store and shows it under these keys."""

from __future__ import annotations

from typing import Any, Final, Protocol

from plaita.base.clock import new_id
from plaita.base.ids import derived_id

DEFAULT_KEY_PREFIX: Final = "plaita:execution:lease:"
DEFAULT_LEASE_TTL_SECONDS: Final = 120
_FENCE_SECONDS: Final = 7 * 86_400
_ACQUIRE: Final = """
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
if #KEYS == 1 then
  redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
  return ARGV[1]
end
local generation = redis.call('INCR', KEYS[3])
local fence = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
if fence >= generation then
  generation = fence + 1
  redis.call('SET', KEYS[3], generation)
end
redis.call('SET', KEYS[2], generation, 'EX', ARGV[3])
local value = ARGV[1] .. ':' .. string.format('%d', generation)
redis.call('SET', KEYS[1], value, 'EX', ARGV[2])
return value
"""
_RENEW: Final = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('EXPIRE', KEYS[1], ARGV[2]) or 0"
_RELEASE: Final = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"


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


class RedisExecutionLease:
    """A lease on Redis, for programs that drive executions themselves.

    It says nothing to the workers of a store, which show what they hold under the same keys. With ``fence_key_prefix``
    (``plaita:execution:fence:``) each time it is granted has a number of its own, and the stored value is
    ``holder:number``. Raises what the client raises.
    """

    def __init__(
        self, redis_client: Any, key_prefix: str = DEFAULT_KEY_PREFIX, fence_key_prefix: str | None = None
    ) -> None:
        self._client, self._prefix, self._fence = redis_client, key_prefix, fence_key_prefix
        self._values: dict[tuple[str, str], str] = {}

    def try_acquire(self, execution_id: str, holder: str, ttl_seconds: int = DEFAULT_LEASE_TTL_SECONDS) -> bool:
        """Become the holder; ``False`` while somebody is."""
        keys = [f"{self._prefix}{execution_id}"]
        if self._fence is not None:
            generations = f"{self._fence.rstrip(':')}gen:"
            keys += [f"{self._fence}{execution_id}", f"{generations}{execution_id}"]
        value = self._client.eval(_ACQUIRE, len(keys), *keys, holder, ttl_seconds, _FENCE_SECONDS)
        if value is None:
            return False
        self._values[execution_id, holder] = _text(value)
        return True

    def renew(self, execution_id: str, holder: str, ttl_seconds: int = DEFAULT_LEASE_TTL_SECONDS) -> bool:
        """Stay the holder; ``False`` when one is it no more."""
        value = self._values.get((execution_id, holder), holder)
        return bool(self._client.eval(_RENEW, 1, f"{self._prefix}{execution_id}", value, ttl_seconds))

    def release(self, execution_id: str, holder: str) -> bool:
        """Be the holder no more; ``False`` when one was not."""
        value = self._values.pop((execution_id, holder), holder)
        return bool(self._client.eval(_RELEASE, 1, f"{self._prefix}{execution_id}", value))

    def get_holder(self, execution_id: str) -> str | None:
        """The stored value: the holder, and with a fence its number."""
        value = self._client.get(f"{self._prefix}{execution_id}")
        return None if value is None else _text(value)


def new_holder_token(prefix: str = "worker", instance_id: str | None = None) -> str:
    """A name for one holder: ``prefix:instance:16 hexadecimal characters``, without the instance when there is none."""
    return ":".join(part for part in (prefix, instance_id, derived_id("holder", new_id())[:16]) if part)


def holder_instance_id(lease_value: str | None) -> str | None:
    """The instance in the name of a holder, with or without a number behind it; ``None`` when it names none.

    Of three parts the last is random or the number of a lease without an instance.
    """
    prefix, *rest = (lease_value or "").split(":")
    if prefix not in ("start", "resume", "worker") or len(rest) not in (2, 3):
        return None
    return None if len(rest) == 2 and rest[1].isdecimal() and len(rest[1]) != 16 else rest[0]


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
