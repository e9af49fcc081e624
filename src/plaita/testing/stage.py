"""Where flows are tested: one store in memory, one process that works in it, time that jumps.

The process is a real ``Worker``. It lives only while there is something to do: when everything waits it is drained,
and time may jump to whatever is due next without a turn of anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, NoReturn, TypeVar, cast

from plaita.backends.limits import Limits
from plaita.backends.memory import MemoryBackend
from plaita.backends.rows import Rows
from plaita.base.clock import seeded
from plaita.base.errors import Unavailable
from plaita.policy.lease import LeasePlan
from plaita.ports.backend import Backend
from plaita.ports.runs import SettleAnswer, Settled, Step
from plaita.ports.values import RunId
from plaita.server.worker import Surroundings, Worker, WorkerOptions
from plaita.telemetry import events as told
from plaita.telemetry.event import Event, Field
from plaita.testing.doubles import Cast, Rehearsed
from plaita.testing.kills import Kills
from plaita.testing.loop import LoopSpawner, VirtualLoop, bury
from plaita.testing.performed import Ledger, Performed
from plaita.testing.saying import NotAsExpected

T = TypeVar("T")

LEASE = LeasePlan(lease_ms=3_600_000, gap_ms=10**15, grace_ms=0)
"""Time jumps here, and a jump is no outage: nobody has to wait after one. Leases end when their process does."""
RENEW_MS, LOOK_MS = 1_200_000, 600_000
"""How often the process looks around. It is told of what happens, so that long calls take few turns."""
ROUNDING_MS = 1e-3
PROCESSES_MAX = 20_000


class Halt(KeyboardInterrupt):
    """The process stops where it stands: it was killed, or the test has failed. No ``except`` of a node sees it."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a world begins with. ``down_ms``: how long a killed process is missed. ``twice``: everything that comes
    from outside is sent once more at once, and again when the run has moved on."""

    now_ms: int
    env: Mapping[str, str] = field(default_factory=dict)
    timezone: str | None = None
    down_ms: int = 1_000
    twice: bool = False


class StageClock:
    """Both clocks of the process and that of the store: the time of the loop that runs, on top of what has passed."""

    def __init__(self, epoch_ms: int) -> None:
        self.epoch_ms, self.passed_ms, self.loop = epoch_ms, 0.0, VirtualLoop()

    def now_ms(self) -> int:
        return self.epoch_ms + int(self.elapsed_ms() + ROUNDING_MS)

    def elapsed_ms(self) -> float:
        return self.passed_ms + self.loop.time() * 1000

    def begin(self) -> VirtualLoop:
        """A new loop, at the time of now."""
        self.passed_ms, self.loop = self.elapsed_ms(), VirtualLoop()
        return self.loop

    def jump(self, to_ms: int) -> None:
        """While nothing runs, time passes at once; it never goes back."""
        self.begin()
        self.passed_ms = max(self.passed_ms, float(to_ms - self.epoch_ms))


class Line:
    """The store as one process sees it, until that process is dead."""

    name = "memory:"

    def __init__(self, stage: Stage) -> None:
        self._stage, self.alive = stage, True
        self.stop = asyncio.Event()

    @property
    def lease_ms(self) -> int:
        return self._stage.store.lease_ms

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        return partial(self._ask, verb)

    async def _ask(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        if self.alive:
            return await getattr(self._stage.store, verb)(*args, **kwargs)
        if verb in ("release", "withdraw"):
            return 0
        return await asyncio.get_running_loop().create_future()

    def on_mail(self, tell: Callable[[RunId], None]) -> bool:
        """Nobody is told."""
        return False

    async def bury_dead(self) -> int:
        """There is no other process; nobody needs to look for one again and again."""
        await self.stop.wait()
        return 0

    async def settle(self, step: Step) -> SettleAnswer:
        """Write a step, unless the process dies over it."""
        when = self._stage.kills.strike(step) if self.alive else None
        if when == "before":
            self._stage.kill()
        answer: SettleAnswer = await self._ask("settle", step)
        if isinstance(answer, Settled):
            self._stage.ledger.stored(step)
        if when == "after":
            self._stage.kill()
        if when == "lost":
            raise Unavailable("the answer was lost")
        return answer


class Stage:
    """One world. Deterministic: the same scene, cast, kills and orders take the same steps."""

    def __init__(self, scene: Scene, cast_: Cast, kills: Kills) -> None:
        self.scene, self.kills, self.ledger = scene, kills, Ledger()
        self.clock = StageClock(scene.now_ms)
        self.store = MemoryBackend(self.clock, limits=Limits(lease=LEASE))
        self._cast, self._definitions = cast_, Rehearsed(self.store, cast_, self)
        self._seeds = count(scene.now_ms)
        self._line = Line(self)
        self._trouble: AssertionError | None = None
        self._killed = False

    # What nodes and the process tell.

    def now_ms(self) -> int:
        """Virtual time, ms since 1970."""
        return self.clock.now_ms()

    def perform(self, call: Performed) -> None:
        """A node begins."""
        try:
            self.ledger.begin(call)
        except NotAsExpected as e:
            raise self.failed(e) from None

    def failed(self, error: AssertionError) -> BaseException:
        """The test has failed: it is raised where the world is driven."""
        self._trouble = self._trouble or error
        return Halt()

    def kill(self) -> NoReturn:
        """The process ends where it stands."""
        self._killed = True
        raise Halt

    def emit(self, event: Event, /, **fields: Field) -> None:
        """Telemetry of the process; what must never be said fails the test."""
        strange = event is told.SETTLE_REFUSED and fields.get("answer") == "mismatch"
        if self._line.alive and (strange or event is told.ATTEMPT_CRASHED):
            raise self.failed(NotAsExpected(f"{event.name}: {fields}"))

    # What a test does.

    def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something from outside, in no time."""
        loop = VirtualLoop()
        with seeded(next(self._seeds)):
            try:
                return loop.run_until_complete(work)
            finally:
                loop.close()

    def reopened(self, run_id: str) -> None:
        """A failed run was opened again."""
        self._cast.forget(self.ledger.reopened(run_id))

    def look(self, question: Callable[[Rows], T]) -> T:
        """Read the rows of the store."""
        return self.store._memory.read(question)

    def play(self, until_ms: int | None = None) -> None:
        """Let everything happen that is due until then (``None``: now), in order. Backoffs count as due."""
        for _ in range(PROCESSES_MAX):
            due = self.next_due(until_ms)
            if due is None:
                break
            self.clock.jump(due)
            self._live()
        else:
            raise NotAsExpected(f"after {PROCESSES_MAX} wake-ups there is still something due; does the flow ever end?")
        if until_ms is not None:
            self.clock.jump(until_ms)

    def next_due(self, until_ms: int | None = None) -> int | None:
        """When there is something to do next, if that is until then, or until every backoff is over."""
        now = self.now_ms()
        if self.look(lambda rows: rows.ledger.first()) is not None:
            return now
        live = self.look(lambda rows: [(run.due, run.retry) for run in rows.runs.live()])
        due = min((due for due, _ in live if due is not None), default=None)
        horizon = max([now, until_ms or now, *(due for due, retry in live if retry and due)])
        return due if due is not None and due <= horizon else None

    def _live(self) -> None:
        """A process lives until there is nothing to do now, or until it is killed; then the next one takes over."""
        loop, line = self.clock.begin(), Line(self)
        self._line = line
        self.store._memory.stirred = asyncio.Event()
        options = WorkerOptions(
            env=self.scene.env, timezone=self.scene.timezone, renew_ms=RENEW_MS, poll_ms=LOOK_MS
        )  # fmt: skip
        around = Surroundings(self.clock, self, LoopSpawner(), definitions=self._definitions)
        with seeded(next(self._seeds)):
            worker = Worker(cast(Backend, line), options, around)
            try:
                loop.run_until_complete(self._work(worker, line.stop))
            except Halt:
                pass
            finally:
                line.alive = False
                bury(loop)
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            raise trouble
        if self._killed:
            self._killed = False
            self.ledger.killed()
            self.clock.jump(self.now_ms() + self.scene.down_ms)
            self.ask(self.store.release(worker.holder))

    async def _work(self, worker: Worker, stop: asyncio.Event) -> None:
        working = asyncio.ensure_future(worker.run(stop))
        while not working.done() and (worker.running or self._is_due()):
            if worker.lacks:
                raise self.failed(NotAsExpected(f"the flow cannot be loaded: {'; '.join(worker.lacks.values())}"))
            await worker.changed(LOOK_MS)
        stop.set()
        await working

    def _is_due(self) -> bool:
        due = self.look(lambda rows: rows.runs.next_due())
        return (due is not None and due <= self.now_ms()) or self.look(lambda rows: rows.ledger.first()) is not None
