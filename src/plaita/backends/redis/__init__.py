"""Runs on a Redis server: every verb is one Lua script."""

from plaita.backends.redis.backend import RedisBackend

__all__ = ["RedisBackend"]
