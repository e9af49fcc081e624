"""The Redis task queue comes later; producers of this release use ``Runtime.start`` and ``plaita start``."""

from __future__ import annotations

from typing import Final

from plaita.base.absent import REDIS, absent

DEFAULT_CONSUMER_GROUP: Final = "plaita-workers"
DEFAULT_DLQ_MAX_LEN: Final = 1000

__getattr__ = absent("plaita.server.task_queue", RedisStreamTaskQueue=REDIS, enqueue_task=REDIS)
