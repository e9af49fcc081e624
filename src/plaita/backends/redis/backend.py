"""The Redis backend: any number of processes on any number of machines."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from plaita.backends.limits import Limits
from plaita.backends.process_codec import process_bytes, process_of
from plaita.backends.redis.address import read_address
from plaita.backends.redis.examining import examine
from plaita.backends.redis.flags import FlagWatch
from plaita.backends.redis.hints import Hints
from plaita.backends.redis.inbox import RedisInbox
from plaita.backends.redis.keys import PREFIX
from plaita.backends.redis.kinds import Kinds
from plaita.backends.redis.link import Link
from plaita.backends.redis.programs import Programs
from plaita.backends.redis.published import PublishedLayout
from plaita.backends.redis.registered import in_state, record
from plaita.backends.redis.runs import RedisRuns
from plaita.backends.redis.talk import Links, Talk
from plaita.base.clock import Clock
from plaita.base.errors import NotSupported, Unavailable
from plaita.core.taking_over import Judged, judge
from plaita.policy.lease import plan_lease
from plaita.ports.backend import Finding, Risk
from plaita.ports.processes import Process
from plaita.ports.values import RunId

PROCESS_TTL_MS = 30_000
STOPPED_TTL_MS = 5_000
"""How long the registry shows that a worker has left."""
PROMOTED_AT_ONCE = 100
OVERDUE_MS = 50
"""How long a hint sleeps at most while something is due that this process did not take."""


class RedisBackend(RedisRuns, RedisInbox):
    """A store on a Redis server. ``limits`` overrides what ``lease_ms`` and ``cap`` say; ``clock`` ``None`` is the
    server's. Opens its connections when they are first used, on the event loop it belongs to.

    Raises ``InputError`` for a URL that makes no sense; every method raises ``Unavailable``, and ``NotSupported`` when
    the server cannot hold a store."""

    def __init__(
        self,
        url: str,
        clock: Clock | None = None,
        *,
        lease_ms: int = 10_000,
        cap: int | None = None,
        limits: Limits | None = None,
        prefix: str = PREFIX,
    ) -> None:
        address = read_address(url)
        limits = limits or Limits(lease=plan_lease(lease_ms), cap=cap)
        self._links = Links(*(Link(address, confirms=limits.confirm_ms > 0) for _ in range(3)))
        super().__init__(Talk(self._links, limits, clock, prefix))
        self._kinds = Kinds(self._talk)
        self._brought = set()
        self._hints = Hints(address, self._talk.key("hints"))
        self.programs = Programs(self._talk, address)
        """Events that programs publish beside the store."""
        self.published = PublishedLayout(self._talk)
        """Rows and flows of the published system."""
        self._announced: dict[str, Process] = {}
        self._heard: set[str] = set()
        self._forgotten: set[str] = set()
        self._reminder: asyncio.Task[None] | None = None
        self._flags = FlagWatch(self._talk)
        self._owner = os.getpid()

    @property
    def name(self) -> str:
        return self._talk.name

    async def bring(self, tenant: str, execution_id: str) -> Judged | None:
        return await judge(self, self.published, tenant, execution_id)

    async def hint(self, timeout_ms: int) -> None:
        earliest, now_ms = await self._talk.run("next_due")
        if earliest != b"":
            timeout_ms = min(timeout_ms, earliest - now_ms if earliest > now_ms else OVERDUE_MS)
        await self._hints.wait(timeout_ms)

    def on_mail(self, tell: Callable[[RunId], None]) -> bool:
        self._hints.on_mail(lambda named: tell(RunId(named)))
        return True

    def on_command(self, instance: str, tell: Callable[[bytes], None]) -> bool:
        self._hints.on_message(self._talk.key("control", instance), tell)
        return True

    async def announce(self, process: Process) -> bool:
        self._announced[process.holder] = process
        await self._say_alive(process)
        is_forgotten = process.holder in self._forgotten
        self._forgotten.discard(process.holder)
        await self._talk.tidy()
        # The cap may be another one than that of the process that let runs wait for a slot.
        while await self._talk.run("promote_all", n=PROMOTED_AT_ONCE) == PROMOTED_AT_ONCE:
            pass
        if self._reminder is None or self._reminder.done():
            self._reminder = asyncio.create_task(self._remind())
        self._flags.begin()
        return not is_forgotten

    async def _say_alive(self, process: Process) -> None:
        was_there = await self._talk.run(
            "announce",
            holder=process.holder,
            record=process_bytes(process),
            ttl=PROCESS_TTL_MS,
            instance=process.facts.instance,
            shown=self._shown(process),
        )
        if process.holder in self._heard and not was_there:
            self._forgotten.add(process.holder)
        self._heard.add(process.holder)

    def _shown(self, process: Process) -> bytes:
        """The record of the documented registry; empty for a process that is not to be listed."""
        if not process.facts.listed or not process.facts.instance:
            return b""
        return record(process, self.name, self._talk.limits)

    async def _remind(self) -> None:
        """An announcement runs out: it is said again while the process lives."""
        while True:
            await asyncio.sleep(PROCESS_TTL_MS / 3_000)
            for holder in list(self._announced):
                # Who withdrew meanwhile must not come back.
                if process := self._announced.get(holder):
                    with suppress(Unavailable):
                        await self._say_alive(process)

    async def withdraw(self, holder: str) -> None:
        self._announced.pop(holder, None)
        self._heard.discard(holder)
        raw = await self._talk.call("GET", self._talk.key("process", holder))
        said = None if raw is None else process_of(raw)
        await self._talk.run(
            "withdraw",
            holder=holder,
            instance="" if said is None else said.facts.instance,
            shown=b"" if said is None else self._shown(in_state(said, "stopped")),
            ttl=STOPPED_TTL_MS,
        )
        await self.release(holder)

    async def living(self) -> list[Process]:
        names = await self._talk.call("ZRANGE", self._talk.key("processes"), 0, -1)
        found = await asyncio.gather(*(self._talk.call("GET", self._talk.key("process", n.decode())) for n in names))
        return [process_of(raw) for raw in found if raw is not None]

    async def bury_dead(self) -> int:
        """Whether a process of another machine lives is known by its leases alone."""
        return 0

    async def risks(self) -> list[Risk]:
        await self._talk.run("now")
        server = self._links.main.server
        return [] if server is None else server.risks()

    async def examine(self) -> list[Finding]:
        return await examine(self._talk)

    async def backup(self, path: Path, *, replace: bool = True) -> None:
        raise NotSupported(f"the store {self.name} is no file", "copy what Redis itself writes (BGSAVE, or its AOF)")

    async def close(self) -> None:
        if self._reminder is not None and self._owner == os.getpid():
            self._reminder.cancel()
            self._flags.end()
            with suppress(Unavailable):
                for holder in list(self._announced):
                    await self.withdraw(holder)
        await self._hints.close()
        await self._links.close()
