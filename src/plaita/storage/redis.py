"""The Redis storages come later; the constants of their rows are here."""

from __future__ import annotations

from typing import Final

from plaita.base.absent import REDIS, absent

DEFAULT_EXECUTION_STATE_TTL_DAYS: Final = 30
_DAY_SECONDS = 86_400

__getattr__ = absent("plaita.storage.redis", RedisExecutionStorage=REDIS, RedisFlowStorage=REDIS)


def execution_state_ttl_seconds() -> int:
    """How long an ended execution is kept, ``PLAITA_EXECUTION_STATE_TTL_DAYS``, in seconds."""
    from plaita.settings import current_settings

    return current_settings().store.retention_days * _DAY_SECONDS
