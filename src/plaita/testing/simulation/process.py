"""A simulated process: a real worker on a loop of its own, and its connection to the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from plaita.core.calls import NodeExecution
from plaita.ports.backend import Backend
from plaita.ports.processes import Process
from plaita.server.worker.attempt import Attempt
from plaita.server.worker.worker import Surroundings, Worker, WorkerOptions
from plaita.telemetry import events as told
from plaita.telemetry.event import Event, Field
from plaita.testing.loop import EPOCH_MS, LoopSpawner, VirtualLoop
from plaita.testing.simulation.flows import NODES
from plaita.testing.simulation.nodes import OUTSIDES

if TYPE_CHECKING:
    from plaita.testing.simulation.world import World

RENEW_MS, POLL_MS = 3_000, 1_000


class Link:
    """The ports of the store as one process sees them: every verb is a message that the world may lose."""

    name = "simulation"

    def __init__(self, process: SimProcess) -> None:
        self._process = process
        self._nonces: set[str] = set()

    @property
    def lease_ms(self) -> int:
        return self._process.world.limits.lease.lease_ms

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        return partial(self._ask, verb)

    async def announce(self, process: Process) -> None:
        """The world knows its processes."""

    async def withdraw(self, holder: str) -> None:
        await self._ask("release", holder)

    async def bury_dead(self) -> int:
        """The world reports the dead itself."""
        return 0

    async def hint(self, timeout_ms: int) -> None:
        """A hint may come early, late or not at all."""
        await asyncio.sleep(timeout_ms * (5 + self._process.world.dice.below(96)) / 100_000)

    async def _ask(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        world = self._process.world
        if verb == "claim":
            if args[0] in self._nonces:
                world.violated(f"I2 {self._process.name} claims again under a nonce that was answered")
            answer = await world.send(self._process, verb, args, kwargs)
            self._nonces.add(args[0])
            return answer
        return await world.send(self._process, verb, args, kwargs)


class SimTelemetry:
    """Hears what a worker reports; some of it must never be said."""

    def __init__(self, process: SimProcess) -> None:
        self._process = process

    def emit(self, event: Event, /, **fields: Field) -> None:
        process = self._process
        if not process.alive:
            return
        world = process.world
        if event is told.ATTEMPT_CRASHED:
            world.violated(f"an attempt crashed: {fields}")
        elif event is told.SETTLE_REFUSED and fields.get("answer") == "mismatch":
            world.violated(f"I7 a settle was answered Mismatch: {fields}")
        elif event is told.RUN_BLOCKED and "stored state" in str(fields.get("reason")):
            world.violated(f"I7 stored state cannot be restored: {fields}")
        elif event is told.LEASE_LOST:
            world.trace(process.name, "lost its lease", str(fields.get("run_id")))


class ProcessClock:
    """Wall clock wrong by an offset of its own; the other one runs at a rate of its own, also while the loop stands."""

    def __init__(self, process: SimProcess, offset_ms: int, rate: float) -> None:
        self._process, self._offset_ms, self._rate = process, offset_ms, rate

    def now_ms(self) -> int:
        return EPOCH_MS + self._offset_ms + int(self.elapsed_ms())

    def elapsed_ms(self) -> float:
        return self._process.world.now * self._rate


class SimProcess:
    """``alive`` until it is killed or ends; ``paused_until`` (world ms) it takes no turn."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.alive = world, name, True
        self.loop = VirtualLoop()
        dice = world.dice
        # The rates differ to the safe side: no lease counted here outlives the store's.
        self.clock = ProcessClock(self, dice.below(10**7) - 5 * 10**6, 1 + dice.below(10) / 1000)
        self.born, self.stood_ms = world.now, 0.0
        self.paused_until = self.resumed_at = self.hurt_until = -1.0
        self.begun: set[tuple[str, ...]] = set()
        self.caught: list[NodeExecution] = []
        options = WorkerOptions(
            concurrency=world.dice.pick((2, 10)), pool_size=2, renew_ms=RENEW_MS, poll_ms=POLL_MS, drain_ms=5_000,
            imports=(NODES,), env={"COLOUR": "red"},
        )  # fmt: skip
        around = Surroundings(self.clock, SimTelemetry(self), LoopSpawner())
        OUTSIDES[self.loop] = world.outside_of(self)
        self.link = Link(self)
        self.worker = Worker(cast(Backend, self.link), options, around)
        self.stop = asyncio.Event()
        self.task = self.loop.create_task(self.worker.run(self.stop))

    @property
    def holder(self) -> str:
        return self.worker.holder

    @property
    def attempts(self) -> list[Attempt]:
        return list(self.worker._attempts.values())

    def next_turn(self) -> float | None:
        """World time of its next turn; ``None``: nothing will ever happen here."""
        at = self.loop.next_timer()
        if at is None:
            return None
        return max(self.born + self.stood_ms + at * 1000, self.paused_until)

    def turn(self) -> None:
        """Do what is due now."""
        self.loop.turn((self.world.now - self.born - self.stood_ms) / 1000)
        if self.alive and self.task.done():
            self.world.ended(self)

    def pause(self, ms: float, *, asleep: bool) -> None:
        """Take no turn for a while; ``asleep``: the loop's time stands too, as in a sleeping machine."""
        # Calls that were begun and have not reached their first line: nobody could look at the lease again for them.
        self.caught = [view for attempt in self.attempts for _, view in attempt._calls._tasks.values()]
        self.paused_until = self.resumed_at = self.world.now + ms
        self.hurt_until = max(self.hurt_until, self.world.now + ms + 2 * self.link.lease_ms)
        if asleep:
            self.stood_ms += ms

    def drain(self) -> None:
        """As a signal would."""
        self.loop.call_soon(self.stop.set)

    def attempt_performing(self, execution: NodeExecution) -> Attempt | None:
        """The attempt a call belongs to."""
        for attempt in self.attempts:
            if any(view is execution for _, view in attempt._calls._tasks.values()):
                return attempt
        return None

    def moves(self, run_id: str, nonce: str) -> bool:
        """Whether it has an attempt under this claim."""
        return any(a.header.run_id == run_id and a.token.nonce == nonce for a in self.attempts)

    def bury(self) -> None:
        """Let the objects of a dead process end where they can touch nothing."""
        self.alive = False
        self.loop.set_exception_handler(lambda *_: None)
        for _ in range(50):
            tasks = [t for t in asyncio.all_tasks(self.loop) if not t.done()]
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            while (at := self.loop.next_timer()) is not None and at <= self.loop.time():
                self.loop.turn(at)
        self.loop.close()
