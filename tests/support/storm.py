"""Random faults for a fleet on Redis, one after the other: who was hit is known, so that what follows can be judged."""

from __future__ import annotations

import logging
import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field

import redis

from plaita.base.errors import Unavailable
from plaita.runtime import Runtime
from tests.servers import RedisServer
from tests.support.fleet import wait_until
from tests.support.redis_fleet import LEASE_S, RedisFleet

STOPPED_S = LEASE_S + 2
PAUSED_S = 1.0


@dataclass
class Storm:
    """``struck`` are processes that were killed or stopped, ``holders`` the names of all that were ever seen."""

    server: RedisServer
    fleet: RedisFleet
    runtime: Runtime
    dice: random.Random
    struck: set[int] = field(default_factory=set)
    holders: dict[str, int] = field(default_factory=dict)
    _stopped: dict[int, float] = field(default_factory=dict)
    _coming: list[str] = field(default_factory=list)

    def look(self) -> None:
        """See who is there, let those go on whose time is over, replace who ended because it found no server."""
        with suppress(Unavailable):
            self.holders |= {p.holder: p.pid for p in self.runtime.ask(lambda store: store.living())}
        for pid in [pid for pid, until in self._stopped.items() if time.monotonic() >= until]:
            self._go_on(pid)
        for pid, process in list(self.fleet.processes.items()):
            if process.poll() is not None:
                del self.fleet.processes[pid]
                self.fleet.start_worker()

    def strike(self) -> None:
        """One fault; each kind has its turn before one comes again."""
        if not self._coming:
            kinds = ["kill", "stop", "cut", "forget", "pause", "restart"]
            self._coming = self.dice.sample(kinds, len(kinds))
        kind = self._coming.pop()
        logging.getLogger("storm").warning("%s", kind)
        getattr(self, f"_{kind}")()

    def end(self) -> None:
        """Everybody goes on."""
        for pid in list(self._stopped):
            self._go_on(pid)

    def _victim(self) -> int | None:
        """A worker whose name is known and which is not stopped."""
        known = set(self.holders.values()) - self._stopped.keys()
        able = sorted(known & self.fleet.processes.keys())
        return self.dice.choice(able) if able else None

    def _kill(self) -> None:
        if (pid := self._victim()) is not None:
            self.struck.add(pid)
            self.fleet.kill(pid)
            self.fleet.start_worker()

    def _stop(self) -> None:
        if (pid := self._victim()) is not None:
            self.struck.add(pid)
            self._stopped[pid] = time.monotonic() + STOPPED_S
            os.kill(pid, signal.SIGSTOP)

    def _go_on(self, pid: int) -> None:
        del self._stopped[pid]
        os.kill(pid, signal.SIGCONT)

    def _cut(self) -> None:
        with redis.Redis.from_url(self.server.url) as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")

    def _forget(self) -> None:
        with redis.Redis.from_url(self.server.url) as client:
            client.script_flush()
            client.function_flush()

    def _pause(self) -> None:
        ends = time.monotonic() + PAUSED_S
        os.kill(self.server.pid, signal.SIGSTOP)
        wait_until(lambda: time.monotonic() >= ends, "the pause is over")
        os.kill(self.server.pid, signal.SIGCONT)

    def _restart(self) -> None:
        self.server.kill()
        self.server.start()
