"""Everything a Redis holds, to be put back later; and what its keys are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import redis


@dataclass(frozen=True)
class Kept:
    """What a server held at a time."""

    dumps: dict[bytes, tuple[bytes, int]]

    @classmethod
    def of(cls, client: redis.Redis) -> Kept:
        """Read it in one step: nobody writes between two keys of it."""
        read: Any = client.eval(
            "local found = {} for _, key in ipairs(redis.call('KEYS', '*')) do"
            " found[#found + 1] = {key, redis.call('DUMP', key), redis.call('PTTL', key)} end return found",
            0,
        )
        return cls({key: (dump, max(ttl, 0)) for key, dump, ttl in read})

    def put_back(self, client: redis.Redis) -> None:
        """What came later is gone, as after a restore or a fail-over that lost it."""
        with client.pipeline(transaction=True) as pipe:
            pipe.flushall()
            for key, (dump, ttl) in self.dumps.items():
                pipe.restore(key, ttl, dump)
            pipe.execute()


def keys_of(client: redis.Redis) -> dict[str, int]:
    """Every key and how long it stays: seconds, -1 for ever."""
    return {key.decode(): int(client.ttl(key)) for key in client.scan_iter(count=1000)}


def commands_of(client: redis.Redis) -> int:
    """How many commands the server has carried out, those inside of functions too."""
    return sum(stat["calls"] for stat in client.info("commandstats").values())
