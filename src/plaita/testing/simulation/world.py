"""A world: some workers, one store, and what a seed lets happen to them."""

from __future__ import annotations

import asyncio
import heapq
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeVar

from plaita.backends.limits import Limits
from plaita.backends.memory import MemoryBackend
from plaita.backends.rows import Rows, WaitRow
from plaita.backends.sqlite import SqliteBackend
from plaita.base.errors import Unavailable
from plaita.ports.backend import Backend
from plaita.ports.runs import Claim
from plaita.ports.values import RunId
from plaita.testing.loop import EPOCH_MS, VirtualLoop
from plaita.testing.simulation.answers import Premises
from plaita.testing.simulation.auditor import Auditor, Executed, Looking, WatchedGate
from plaita.testing.simulation.coverage import Coverage
from plaita.testing.simulation.effects import EffectLog, ProcessOutside
from plaita.testing.simulation.faults import QUIET, Faults, Rates
from plaita.testing.simulation.flows import Planned
from plaita.testing.simulation.machines import compare_machine
from plaita.testing.simulation.process import Request, SimProcess
from plaita.testing.simulation.random_flows import Dice
from plaita.testing.simulation.record import Record
from plaita.testing.simulation.words import say

T = TypeVar("T")
Kind = Literal["memory", "sqlite", "redis"]
KINDS: tuple[Kind, ...] = ("memory", "sqlite")
"""Stores that need nothing installed."""
READS = frozenset({"frames", "reload", "closure", "run", "waits", "history", "inbox", "task", "now_ms", "flow"})
CALM_MS = 10**9


@dataclass(frozen=True, slots=True)
class Setting:
    """What a world is made of. ``url``: a Redis server whose contents may go, for a store on Redis."""

    seed: int
    backend: Kind = "memory"
    workers: int = 2
    rates: Rates = QUIET
    limits: Limits = field(default_factory=Limits)
    quiet: bool = False
    url: str = ""


class StoreClock:
    """The store's wall clock: the world's time, and the steps somebody made it take."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.stepped_ms = 0

    def now_ms(self) -> int:
        return EPOCH_MS + self.stepped_ms + int(self._world.now)

    def elapsed_ms(self) -> float:
        return self._world.now


class World:
    """Time is ``now``, ms since the world began. Everything that happens is an event here or a turn of a process."""

    def __init__(self, setting: Setting, planned: list[Planned], folder: Path | None = None) -> None:
        self.setting, self.seed, self.quiet, self.limits = setting, setting.seed, setting.quiet, setting.limits
        self.dice = Dice(setting.seed)
        self.now = 0.0
        self.coverage = Coverage()
        self.record = Record(lambda: self.now)
        self.violated, self.trace = self.record.violated, self.record.trace
        self.processes: list[SimProcess] = []
        self.clock = StoreClock(self)
        self.strange_until = self.outage_until = -1.0
        self._graves: list[SimProcess] = []
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers, self._names = count(), count(1)
        self.on_claim: Callable[[list[Claim]], object] = len
        self._planned = {p.run_id: p for p in planned}
        self._server = VirtualLoop()
        self._folder = None if folder else tempfile.TemporaryDirectory(prefix="plaita-sim-")
        self.store, gate = self._open(folder or Path(self._folder.name if self._folder else ""))
        self.premises = Premises(self.coverage)
        self.faults = Faults(self.dice, setting.rates, self.coverage)
        self.effects = EffectLog(self)
        self.auditor = Auditor(gate, setting.limits, self.premises, self.violated, self._healthy)

    def _open(self, place: Path) -> tuple[Backend, Looking]:
        """The store of the setting and the way to look at it."""
        limits = self.setting.limits
        if self.setting.backend == "redis":
            from plaita.testing.simulation.on_redis import store_on_redis

            return store_on_redis(self.setting.url, self.clock, limits)
        store: MemoryBackend | SqliteBackend
        if self.setting.backend == "memory":
            store = MemoryBackend(self.clock, limits=limits)
        else:
            store = SqliteBackend(place / f"{self.seed}.db", self.clock, limits=limits, synchronous="NORMAL")
        gate = store._gate = WatchedGate(store._gate)
        return store, gate

    # What happens.

    def run_until(self, end_ms: float, done: Callable[[], bool] = lambda: False) -> None:
        """Let things happen, one after another, until that time."""
        while not self.record.violations and not done():
            found = self._next()
            at = min([t for t, _ in found], default=None)
            if at is None or at > end_ms:
                self.now = max(self.now, end_ms)
                return
            self.now = max(self.now, at)
            ready = [act for t, act in found if t <= self.now]
            (ready[0] if len(ready) == 1 else self.dice.pick(ready))()

    def _next(self) -> list[tuple[float, Callable[[], object]]]:
        found: list[tuple[float, Callable[[], object]]] = []
        for process in self.processes:
            for strand in process.strands:
                at = strand.next_turn()
                if at is not None:
                    found.append((at, partial(process.turn, strand)))
        if self._events:
            found.append((self._events[0][0], self._happen))
        return found

    def _happen(self) -> None:
        heapq.heappop(self._events)[2]()

    def at(self, delay_ms: float, act: Callable[[], object]) -> None:
        """Something will happen."""
        heapq.heappush(self._events, (self.now + delay_ms, next(self._numbers), act))

    # The store.

    def execute(self, verb: str, *args: Any, who: str = "outside", **kwargs: Any) -> Any:
        """Carry out one verb and look at what it did. Raises what the verb raises."""
        answer = self.ask(verb, *args, **kwargs)
        if verb not in READS and not self.quiet:
            self.trace(who, verb, say(args, answer))
            self.auditor.after(Executed(verb, args, answer, who))
            if verb == "claim":
                self.on_claim(answer)
            if verb == "settle":
                self.look(lambda rows: compare_machine(rows, self.planned(args[0].run_id), args[0], self.violated))
        return answer

    def ask(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        """Carry out a verb and do not look."""
        return self._server.run_until_complete(getattr(self.store, verb)(*args, **kwargs))

    def look(self, question: Callable[[Rows], T]) -> T:
        """Ask the store something; one that cannot be read is a violation of its own."""
        return self.auditor.look(question)

    def answerable(self, run_id: str, wait: WaitRow) -> bool:
        """Whether somebody may answer by hand; in a calm run a timer keeps its own."""
        return wait.deadline is None or not self.planned(run_id).calm or wait.deadline - self.clock.now_ms() > CALM_MS

    async def send(self, process: SimProcess, loop: VirtualLoop, request: Request) -> Any:
        """A request of a process, with whatever becomes of it. Raises ``Unavailable``: the outcome is unknown."""
        fate, answer = self.faults.deliver(), loop.create_future()
        if request.verb == "settle" and process.at_settle is not None:
            strike, process.at_settle = process.at_settle, None
            fate = strike(fate)
        if request.verb == "renew" and not fate.answered:
            process.hurt_until = max(process.hurt_until, self.now + 2 * self.limits.lease.lease_ms)

        def tell(found: Any) -> None:
            self.at(fate.back_ms, lambda: process.alive and loop.call_soon(_hand_over, answer, found))

        def arrive(who: str) -> Any:
            try:
                return self.execute(request.verb, *request.args, who=who, **request.kwargs)
            except Unavailable as e:
                return e

        def arrive_first() -> None:
            found = arrive(process.name)
            if fate.answered:
                tell(found)

        if self.now < self.outage_until:
            tell(Unavailable("the store cannot be reached"))
            return await answer
        if fate.arrives_ms is not None:
            self.at(fate.arrives_ms, arrive_first)
        if fate.again_ms is not None:
            self.at(fate.again_ms, lambda: arrive(f"{process.name} (copy)"))
        if not fate.answered:
            tell(Unavailable("no answer came"))
        return await answer

    # Processes.

    def start_process(self) -> None:
        self.processes.append(SimProcess(self, f"w{next(self._names)}"))
        self.trace(self.processes[-1].name, "starts", "")

    def kill(self, process: SimProcess, *, seen: bool = False) -> None:
        """It ends where it stands. Its requests that are on their way arrive. ``seen``: a supervisor reports it."""
        if not process.alive:
            return
        process.alive = False
        self.processes.remove(process)
        self._graves.append(process)
        self.trace(process.name, "is killed", "")
        self.at(200 + self.dice.below(3_000), self._restart)
        if seen or self.dice.chance(50):
            self.coverage.saw("dead process reported")
            self.at(self.dice.below(800), lambda: self.execute("release", process.holder, who="supervisor"))

    def ended(self, process: SimProcess) -> None:
        """Its worker came back: it was drained, or could not reach the store when it had to."""
        error = process.task.exception()
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if error is not None and not isinstance(error, Unavailable):
            self.violated(f"{process.name} ended with {type(error).__name__}: {error}")
        process.alive = False
        self.processes.remove(process)
        self._graves.append(process)
        self.trace(process.name, "has ended", "" if error is None else str(error))
        self.at(500, self._restart)

    def _restart(self) -> None:
        if len(self.processes) < self.setting.workers:
            self.coverage.saw("process restarted")
            self.start_process()

    def outside_of(self, process: SimProcess) -> ProcessOutside:
        return ProcessOutside(self, process)

    def _healthy(self, run_id: RunId, nonce: str) -> bool:
        """Whether the process behind a nonce moves this run and could renew all the time."""
        holder = nonce.partition(".")[0]
        found = next((p for p in self.processes if p.holder == holder), None)
        return found is not None and found.hurt_until < self.now and found.moves(run_id, nonce)

    @property
    def clock_is_strange(self) -> bool:
        """The store's clock took a step that leases counted elsewhere do not know."""
        return self.now < self.strange_until

    def planned(self, run_id: str) -> Planned:
        """The plan of a run; a detached one belongs to the run it left."""
        return self._planned[RunId(run_id.partition(".")[0])]

    def close(self) -> None:
        """Bury every process and remove the store."""
        for process in [*self.processes, *self._graves]:
            process.bury()
        self._server.run_until_complete(self.store.close())
        if self._folder is not None:
            self._folder.cleanup()


def _hand_over(answer: asyncio.Future[Any], found: Any) -> None:
    if answer.done():
        return
    if isinstance(found, Unavailable):
        answer.set_exception(found)
    else:
        answer.set_result(found)
