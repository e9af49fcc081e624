"""The calls of one attempt: allowed to begin, under way, come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from plaita.base.clock import Clock
from plaita.core.calls import NodeExecution, aperform, is_async, perform
from plaita.engine.effects import Call, Raised, Returned
from plaita.server.worker.pool import Pool
from plaita.server.worker.timeline import Timeline


class OpenCalls:
    """Tasks of the loop, and results until a settle has carried them. ``stir`` is called when one comes back."""

    def __init__(
        self, pool: Pool, incarnation: str, timeline: Timeline, stir: Callable[[], None], clock: Clock
    ) -> None:  # fmt: skip
        self._pool, self._incarnation, self._timeline, self._stir = pool, incarnation, timeline, stir
        self._clock = clock
        self._allowed: list[Call] = []
        self._tasks: dict[str, tuple[asyncio.Task[None], NodeExecution]] = {}
        self._returned: list[Returned | Raised] = []
        self._carried = 0

    @property
    def any_waits(self) -> bool:
        """Is there one that may begin?"""
        return bool(self._allowed)

    @property
    def any_runs(self) -> bool:
        return bool(self._tasks)

    @property
    def any_returned(self) -> bool:
        return bool(self._returned)

    @property
    def any_unsaved(self) -> bool:
        """Is one under way, or has one come back that no settle has carried yet? All else is done again alike."""
        return self.any_runs or self.any_returned

    def allow(self, calls: Iterable[Call]) -> None:
        """The start of these is durable."""
        self._allowed += calls

    def allow_only(self, calls: Iterable[Call]) -> None:
        """The machine was restored: what it has open may begin, unless it did or has come back."""
        known = self._tasks.keys() | {event.id for event in self._returned}
        self._allowed = [call for call in calls if call.id not in known]
        self._carried = 0

    def begin(self) -> None:
        """Begin what is allowed."""
        for call in self._allowed:
            view = NodeExecution(call, self._incarnation)
            self._tasks[call.id] = (asyncio.create_task(self._perform(call, view)), view)
        self._allowed = []

    def carry(self) -> list[Returned | Raised]:
        """The results the next settle carries."""
        self._carried = len(self._returned)
        return self._returned[:]

    def carried(self) -> None:
        """That settle was accepted."""
        del self._returned[: self._carried]
        self._carried = 0

    def drop(self, call_id: str) -> None:
        """Nobody wants its result any more."""
        entry = self._tasks.pop(call_id, None)
        if entry is not None:
            task, view = entry
            view.close()
            task.cancel()
        self._allowed = [call for call in self._allowed if call.id != call_id]
        self._returned = [event for event in self._returned if event.id != call_id]

    def close(self) -> None:
        """Cut everything that is under way."""
        for task, view in self._tasks.values():
            view.close()
            task.cancel()

    async def _perform(self, call: Call, view: NodeExecution) -> None:
        began = self._clock.elapsed_ms()
        if is_async(call):
            event = await aperform(call, view)
        else:
            event = await self._pool.run(lambda: perform(call, view), lambda: self._timeline.left_behind(call))
        self._tasks.pop(call.id, None)
        self._timeline.took(call, (self._clock.elapsed_ms() - began) / 1000, failed=isinstance(event, Raised))
        self._timeline.came_back(event)
        self._returned.append(event)
        self._stir()
