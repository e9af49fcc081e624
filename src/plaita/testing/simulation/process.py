"""A simulated process: a real worker on a loop of its own, and its connection to the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from plaita.core.calls import NodeExecution
from plaita.ports.backend import Backend
from plaita.ports.processes import Process
from plaita.ports.values import RunId
from plaita.server.worker import Surroundings, Worker, WorkerOptions
from plaita.server.worker.attempt import Attempt
from plaita.telemetry import events as told
from plaita.telemetry.event import Event, Field
from plaita.testing.loop import EPOCH_MS, LoopSpawner, bury
from plaita.testing.simulation.faults import Delivery
from plaita.testing.simulation.flows import NODES
from plaita.testing.simulation.nodes import WorldLoop

if TYPE_CHECKING:
    from plaita.testing.simulation.world import World

RENEW_MS, POLL_MS = 3_000, 1_000


@dataclass(frozen=True, slots=True)
class Request:
    """One verb on its way."""

    verb: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Strand:
    """One loop of a process on the world's time. ``paused_until`` (world ms) it takes no turn."""

    def __init__(self, world: World) -> None:
        self._world, self.loop = world, WorldLoop()
        self._born, self.stood_ms = world.now, 0.0
        self.paused_until = -1.0

    def next_turn(self) -> float | None:
        """World time of its next turn; ``None``: nothing will ever happen here."""
        at = self.loop.next_timer()
        return None if at is None else max(self._born + self.stood_ms + at * 1000, self.paused_until)

    def turn(self) -> None:
        """Do what is due now."""
        self.loop.turn((self._world.now - self._born - self.stood_ms) / 1000)


class Link:
    """The ports of the store as one process sees them: every verb is a message that the world may lose."""

    name = "simulation"

    def __init__(self, process: SimProcess, strand: Strand) -> None:
        self._process, self._strand = process, strand
        self._nonces: set[str] = set()

    @property
    def lease_ms(self) -> int:
        return self._process.world.limits.lease.lease_ms

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        return partial(self._ask, verb)

    async def announce(self, process: Process) -> bool:
        """The world knows its processes."""
        return True

    async def withdraw(self, holder: str) -> None:
        await self._ask("release", holder)

    async def bury_dead(self) -> int:
        """The world reports the dead itself."""
        return 0

    async def close(self) -> None:
        """The store is the world's."""

    def on_mail(self, tell: Callable[[RunId], None]) -> bool:
        """Nobody is told."""
        return False

    async def hint(self, timeout_ms: int) -> None:
        """A hint may come early, late or not at all."""
        await asyncio.sleep(timeout_ms * (5 + self._process.world.dice.below(96)) / 100_000)

    async def _ask(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        world = self._process.world
        if verb == "claim":
            if args[0] in self._nonces:
                world.violated(f"I2 {self._process.name} claims again under a nonce that was answered")
            answer = await world.send(self._process, self._strand.loop, Request(verb, args, kwargs))
            self._nonces.add(args[0])
            return answer
        return await world.send(self._process, self._strand.loop, Request(verb, args, kwargs))


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
        elif event is told.STORE_REWOUND:
            world.violated(f"a store forgot what it had accepted: {fields}")
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


class SimSpawner(LoopSpawner):
    """Threads of the pool are jobs of the loop; the one that renews leases is a strand of its own."""

    def __init__(self, process: SimProcess) -> None:
        super().__init__()
        self._process = process

    def spawn(self, name: str, target: Callable[[], None]) -> None:
        if name == "plaita-renewal":
            self._process.renew_beside()
        else:
            super().spawn(name, target)


class SimProcess:
    """``alive`` until it is killed or ends. Some renew their leases beside their loop, as with a store of its own.

    ``at_settle`` strikes when the next settle is sent, and decides what becomes of that.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.alive = world, name, True
        self.main = Strand(world)
        self.loop, self.strands = self.main.loop, [self.main]
        dice = world.dice
        # The rates differ to the safe side: no lease counted here outlives the store's.
        self.clock = ProcessClock(self, dice.below(10**7) - 5 * 10**6, 1 + dice.below(10) / 1000)
        self.hurt_until = -1.0
        self.begun: set[tuple[str, ...]] = set()
        self.caught: list[NodeExecution] = []
        self.renewing: asyncio.Task[None] | None = None
        self.at_settle: Callable[[Delivery], Delivery] | None = None
        options = WorkerOptions(
            concurrency=dice.pick((2, 10)), pool_size=2, renew_ms=RENEW_MS, poll_ms=POLL_MS, drain_ms=5_000,
            imports=(NODES,), env={"COLOUR": "red"},
        )  # fmt: skip
        self.renews_beside = dice.chance(50)
        around = Surroundings(self.clock, SimTelemetry(self), SimSpawner(self))
        self.loop.outside = world.outside_of(self)
        store = cast(Backend, Link(self, self.main))
        self.worker = Worker(store, options, around, renewal_opener=(lambda: store) if self.renews_beside else None)
        self.stop = asyncio.Event()
        self.task = self.loop.create_task(self.worker.run(self.stop))

    @property
    def holder(self) -> str:
        return self.worker.holder

    @property
    def attempts(self) -> list[Attempt]:
        return list(self.worker._attempts.values())

    def renew_beside(self) -> None:
        """What the renewal thread does, on a loop of its own."""
        strand, renewal = Strand(self.world), self.worker._renewal
        store = cast(Backend, Link(self, strand))

        async def renew() -> None:
            pause = RENEW_MS / 1000
            while not renewal._stop.is_set():
                await asyncio.sleep(pause)
                pause = renewal._next(await renewal._guarded(partial(renewal._round, store, self.loop)))

        self.strands.append(strand)
        # Loops know their tasks weakly, and an answer that never comes holds none.
        self.renewing = strand.loop.create_task(renew())

    def turn(self, strand: Strand) -> None:
        """Do what is due on one of its loops."""
        strand.turn()
        if self.alive and self.task.done():
            self.world.ended(self)

    def pause(self, ms: float, *, asleep: bool) -> None:
        """Take no turn for a while; ``asleep``: the loops' time stands too, as in a sleeping machine."""
        self._stand(ms, self.strands)
        self.hurt_until = max(self.hurt_until, self.world.now + ms + 2 * self.world.limits.lease.lease_ms)
        for strand in self.strands if asleep else ():
            strand.stood_ms += ms

    def keep_busy(self, ms: float) -> None:
        """Something holds the loop; who renews beside it goes on doing so."""
        if self.renews_beside:
            self._stand(ms, [self.main])
        else:
            self.pause(ms, asleep=False)

    def _stand(self, ms: float, strands: list[Strand]) -> None:
        # Calls that were begun and have not reached their first line: nobody could look at the lease again for them.
        self.caught = [view for attempt in self.attempts for _, view in attempt._calls._tasks.values()]
        for strand in strands:
            strand.paused_until = self.world.now + ms

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
        for strand in self.strands:
            bury(strand.loop)
