"""The Redis event bus and its storages come later."""

from __future__ import annotations

from plaita.base.absent import REDIS, absent

__getattr__ = absent(
    "plaita.event.redis", RedisEventBus=REDIS, RedisEventStorage=REDIS, RedisEventSubscriptionStorage=REDIS
)
