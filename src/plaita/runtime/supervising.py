"""Several worker processes under one that starts them, replaces those that die and lets them drain."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import TypeAdapter

from plaita.app import open_store, worker_name
from plaita.base.clock import Clock, SystemClock, new_id
from plaita.base.errors import CrashLoop, Unavailable
from plaita.ports.backend import Backend
from plaita.runtime.working import Shift, check_worker, report_risks
from plaita.server.worker.endpoint import check_ports
from plaita.settings import Settings
from plaita.telemetry import events as told
from plaita.telemetry.sink import Telemetry

EARLY_MAX: Final = 3
"""So many deaths in a row before a child was ready, and starting more of them is no use."""
AGAIN_MS: Final = (200, 5_000)
"""First and longest pause before the place of a child that died is filled again; the first death has none."""
STEADY_MS: Final = 10_000
"""A child that lived so long was no part of a series."""
LATE_CLAIM_MS: Final = 1_000
"""A claim that a child sent in its last moment may be answered after its leases were ended: they are ended again."""
LAST_WORD_S: Final = 0.2
LEAVING_S: Final = 10.0
"""What a drained child may take beyond its grace, before it is killed."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What a child is told over its line, as one line of JSON. ``path`` is where it imports from."""

    settings: Settings
    shift: Shift
    path: tuple[str, ...]
    log_level: str


ORDERS: Final = TypeAdapter(Orders)
READY: Final = b"ready\n"


@dataclass(slots=True, eq=False)
class Child:
    """A worker process, and the line to it: its end of the line breaking means to the child that it is to drain."""

    number: int
    holder: str
    process: Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    started_ms: float
    ready: bool = False
    hearing: asyncio.Task[None] | None = None


@dataclass(slots=True)
class Place:
    """One of the places for a child; ``deaths`` in a row."""

    number: int
    deaths: int = 0


@dataclass(slots=True)
class Supervisor:
    """Holds no runs. ``command`` starts a child that reads its orders from its standard input.

    A child that dies is replaced, and what it held is due at once. A child that ends in order was told to, and is not
    replaced. ``passing``: exit codes of what passes by itself, such as a store that is away.
    """

    settings: Settings
    shift: Shift
    command: Sequence[str]
    telemetry: Telemetry
    log_level: str
    passing: frozenset[int] = frozenset()
    clock: Clock = field(default_factory=SystemClock)
    _children: set[Child] = field(default_factory=set)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _cutting: bool = False
    _early: int = 0
    _failed: str = ""

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop`` is set and every child has drained, or every child has been told to leave.

        Raises ``CrashLoop`` when children die before they are ready, ``InputError`` for a port that is taken, and what
        opening the store raises.
        """
        check_worker(self.settings)
        await check_ports(self.settings.worker.metrics_host, _ports(self.settings))
        store = open_store(self.settings)
        name = worker_name(self.settings)
        try:
            await report_risks(store, self.telemetry)
            watching = asyncio.create_task(self._watch(stop))
            try:
                async with asyncio.TaskGroup() as group:
                    for number in range(self.settings.worker.processes):
                        group.create_task(self._keep(Place(number), store, name, group))
            finally:
                watching.cancel()
        finally:
            await store.close()
        if self._failed:
            raise CrashLoop(self._failed, "the log above says why; `plaita worker` without --processes shows it alone")

    def cut(self) -> None:
        """Kill every child now; what they held is due at once."""
        self._cutting = True
        self._stopping.set()
        for child in self._children:
            _kill(child)

    async def _watch(self, stop: asyncio.Event) -> None:
        """Once it is time, let every child drain; what does not end is killed."""
        waits = [asyncio.create_task(event.wait()) for event in (stop, self._stopping)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        self._stopping.set()
        for child in self._children:
            child.writer.close()
        await asyncio.sleep(self.settings.worker.drain_timeout_seconds + LEAVING_S)
        for child in self._children:
            _kill(child)

    async def _keep(self, place: Place, store: Backend, name: str, group: asyncio.TaskGroup) -> None:
        """Fill a place until it is time to stop."""
        while not self._stopping.is_set():
            try:
                child = await self._begin(place.number, name)
            except OSError as e:
                # The machine has no more processes, memory or descriptors: it may have them again later.
                self.telemetry.emit(told.CHILD_NOT_STARTED, child=place.number, error=str(e))
                await self._pause(AGAIN_MS[1])
                continue
            code = await self._attend(child)
            if code == 0:
                self.telemetry.emit(told.CHILD_LEFT, child=child.number, pid=child.process.pid, holder=child.holder)
                return
            again_ms = self._count(place, child, code)
            self.telemetry.emit(
                told.CHILD_DIED,
                child=child.number,
                pid=child.process.pid,
                holder=child.holder,
                how=_how(code),
                again_ms=again_ms,
            )
            group.create_task(self._release(store, child.holder))
            await self._pause(again_ms)

    async def _begin(self, number: int, name: str) -> Child:
        ours, theirs = socket.socketpair()
        holder = new_id()
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(*self.command, stdin=theirs.fileno(), process_group=0)
        except OSError:
            ours.close()
            raise
        reader, writer = await asyncio.open_connection(sock=ours)
        child = Child(number, holder, process, reader, writer, self.clock.elapsed_ms())
        self._children.add(child)
        self.telemetry.emit(told.CHILD_STARTED, child=number, pid=process.pid, holder=holder)
        writer.write(ORDERS.dump_json(self._orders(number, holder, name)) + b"\n")
        child.hearing = asyncio.create_task(self._hear(child))
        if self._cutting:
            _kill(child)
        elif self._stopping.is_set():
            writer.close()
        return child

    def _orders(self, number: int, holder: str, name: str) -> Orders:
        worker = self.settings.worker
        port = ports[number] if (ports := _ports(self.settings)) else 0
        own = replace(worker, processes=1, instance_id=f"{name}-{number}", metrics_port=port)
        return Orders(
            replace(self.settings, worker=own), replace(self.shift, holder=holder), tuple(sys.path), self.log_level
        )

    async def _hear(self, child: Child) -> None:
        """The child says one thing: that it takes runs."""
        try:
            child.ready = await child.reader.readline() == READY
        except OSError:
            return
        if child.ready:
            self._early = 0

    async def _attend(self, child: Child) -> int:
        """Until the child has ended; how it ended."""
        try:
            code = await child.process.wait()
            if child.hearing is not None:
                # What it said is there; a process of its own may hold the line open.
                await asyncio.wait([child.hearing], timeout=LAST_WORD_S)
                child.hearing.cancel()
        finally:
            self._children.discard(child)
            child.writer.close()
        return code

    def _count(self, place: Place, child: Child, code: int) -> int:
        """One more death: the pause in milliseconds before the next child."""
        if child.ready and self.clock.elapsed_ms() - child.started_ms >= STEADY_MS:
            place.deaths = 0
        pause_ms = 0 if not place.deaths and child.ready else min(AGAIN_MS[0] << min(place.deaths, 10), AGAIN_MS[1])
        place.deaths += 1
        if not child.ready and code not in self.passing and not self._stopping.is_set():
            self._early += 1
            if self._early >= EARLY_MAX:
                self._failed = f"{self._early} worker processes in a row ended before they took anything: {_how(code)}"
                self._stopping.set()
        return pause_ms

    async def _release(self, store: Backend, holder: str) -> None:
        """End the leases of a dead child, twice. Those of a store that is away end by themselves."""
        try:
            await store.withdraw(holder)
            self.telemetry.emit(told.HOLDERS_RELEASED, count=1)
            await self._pause(LATE_CLAIM_MS)
            await store.release(holder)
        except Unavailable as e:
            self.telemetry.emit(told.STORE_UNAVAILABLE, store=store.name, verb="release", error=str(e))

    async def _pause(self, ms: int) -> None:
        try:
            async with asyncio.timeout(ms / 1000):
                await self._stopping.wait()
        except TimeoutError:
            return


def _ports(settings: Settings) -> range:
    """The ports of the pages, one a child; empty when there are to be none."""
    first = settings.worker.metrics_port
    return range(first, first + settings.worker.processes) if first else range(0)


def _kill(child: Child) -> None:
    if child.process.returncode is None:
        child.process.kill()


def _how(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
