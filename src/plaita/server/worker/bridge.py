"""Events that programs publish under the documented keys reach the waits they are meant for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from plaita.base.errors import Unavailable
from plaita.base.json import encode, parse
from plaita.core.saved import pending_of
from plaita.event.core import Event, fits
from plaita.ports.backend import Backend
from plaita.ports.programs import Given, ProgramEvents, Stored
from plaita.ports.queries import WaitView
from plaita.ports.runs import Woken
from plaita.ports.values import TERMINAL, RunId
from plaita.settings.keeping import EventSettings
from plaita.telemetry import events as told
from plaita.telemetry.sink import Telemetry

BATCH: Final = 200
REST_S: Final = 1.0
"""Between two tries to listen while the server is away."""
SEPARATOR: Final = "|"


def read_event(raw: bytes) -> Event:
    """An event from its JSON text. Raises ``ValueError`` for what is none."""
    found = parse(raw, "the event")
    if not isinstance(found, dict):
        raise ValueError("the event is no object")
    try:
        return Event(**found)
    except ValidationError as e:
        wrong = [f"{'.'.join(map(str, issue['loc']))}: {issue['msg']}" for issue in e.errors(include_url=False)]
        raise ValueError("; ".join(wrong)) from None


class Delivery:
    """Gives an event to the execution that its ``correlation_id`` names, once.

    It reaches the oldest open event wait of its type there whose filter it fits and that has no other key than the id
    of the execution. An event without a correlation, or of another tenant, reaches nobody.
    """

    def __init__(self, store: Backend, given: Given, telemetry: Telemetry) -> None:
        self._store, self._given, self._telemetry = store, given, telemetry

    async def deliver(self, event: Event) -> bool:
        """Did a wait get it now? Raises ``Unavailable``: then it may be said again."""
        if event.correlation_id is None or not await self._given.take(event.event_id):
            return False
        is_given = False
        try:
            is_given = await self._to(RunId(event.correlation_id), event)
        finally:
            if not is_given:
                await self._given.let_go(event.event_id)
        return is_given

    async def _to(self, run_id: RunId, event: Event) -> bool:
        view = await self._store.run(run_id)
        if view is None or view.status in TERMINAL:
            return False
        if view.tenant != (event.tenant_id or "default"):
            self._telemetry.emit(told.EVENT_FOREIGN, event_id=event.event_id, run_id=run_id, tenant=event.tenant_id)
            return False
        waits = [w for w in await self._store.waits(view.run_id) if _listens(w, event, view.run_id)]
        pending = pending_of(await self._store.frames(view.run_id)) if waits else {}
        chosen = next((w for w in waits if fits(event, pending.get(w.wait_id, {}).get("event_filter"))), None)
        if chosen is None:
            return False
        wait_id = await self._given.give(event.event_id, view.run_id, chosen.wait_id)
        answer = await self._store.wake(
            view.run_id, type(chosen.wait_id)(wait_id), encode(event.data), f"event {event.event_id}"
        )
        woken = isinstance(answer, Woken)
        if woken:
            self._telemetry.emit(told.EVENT_GIVEN, event_id=event.event_id, run_id=view.run_id, wait_id=wait_id)
        return woken


def _listens(wait: WaitView, event: Event, run_id: str) -> bool:
    return wait.kind == "event" and wait.event_type == event.event_type and wait.key in (None, run_id)


@dataclass(frozen=True, slots=True)
class Looking:
    """How published events are looked for that nobody heard: every so often, so far back, so many at once."""

    every_ms: int = 300_000
    back_s: float = 3_600.0
    batch: int = BATCH


def looking_of(events: EventSettings) -> Looking | None:
    """As the settings say; ``None``: nothing is looked for."""
    return None if events.no_reconcile else Looking(round(events.reconcile_seconds * 1000), events.backfill_seconds)


async def look(programs: Stored, handle: Callable[[bytes], Awaitable[object]], now_s: float, how: Looking) -> int:
    """Hand everything between the cursor (at most ``back_s`` ago) and now to ``handle``; how many there were.

    The cursor moves behind each batch once all of it is handled. Raises what ``handle`` raises.
    """
    after = _read_cursor(await programs.cursor())
    if after[0] < now_s - how.back_s:
        after = (now_s - how.back_s, "")
    count, limit = 0, how.batch
    while True:
        page = await programs.between(after[0], now_s, limit)
        fresh, is_cut = [at for at in page if at > after], len(page) == limit
        if not fresh and is_cut:
            # More events of one moment than a batch: a larger one sees behind them.
            limit *= 2
            continue
        for _, event_id in fresh:
            raw = await programs.event(event_id)
            if raw is not None:
                await handle(raw)
                count += 1
        if not is_cut:
            await programs.move(repr(now_s))
            return count
        after, limit = fresh[-1], how.batch
        await programs.move(f"{after[0]!r}{SEPARATOR}{after[1]}")


def _read_cursor(text: str) -> tuple[float, str]:
    seconds, _, event_id = text.partition(SEPARATOR)
    try:
        return float(seconds), event_id
    except ValueError:
        return 0.0, ""


@asynccontextmanager
async def bridged(
    store: Backend, programs: ProgramEvents | None, telemetry: Telemetry, how: Looking | None
) -> AsyncIterator[None]:
    """Meanwhile events that programs publish reach their waits, where there is a place for such events."""
    if programs is None:
        yield
        return
    async with asyncio.TaskGroup() as group:
        running = group.create_task(EventBridge(store, programs, telemetry, how).run())
        try:
            yield
        finally:
            running.cancel()


class EventBridge:
    """Hears what is published, and looks now and then for what it did not hear."""

    def __init__(self, store: Backend, programs: ProgramEvents, telemetry: Telemetry, how: Looking | None) -> None:
        """``how`` ``None``: nothing is looked for."""
        self._store, self._programs, self._telemetry, self._how = store, programs, telemetry, how
        self._delivery = Delivery(store, programs, telemetry)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            if self._how is not None:
                group.create_task(self._look_again(self._how))

    async def _listen(self) -> None:
        while True:
            try:
                await self._programs.listen(self._hear)
            except Unavailable as e:
                self._unavailable("listen", e)
            await asyncio.sleep(REST_S)

    async def handle(self, raw: bytes) -> bool:
        """Carry one event out; did a wait get it? What is no event is counted. Raises ``Unavailable``."""
        try:
            return await self._delivery.deliver(read_event(raw))
        except ValueError as e:
            self._telemetry.emit(told.EVENT_UNREADABLE, reason=str(e))
            return False

    async def _hear(self, raw: bytes) -> None:
        try:
            await self.handle(raw)
        except Unavailable as e:
            # Its record is found at the next look.
            self._unavailable("event", e)

    async def _look_again(self, how: Looking) -> None:
        while True:
            try:
                if await self._programs.my_turn(how.every_ms * 9 // 10):
                    await look(self._programs, self.handle, await self._store.now_ms() / 1000, how)
            except Unavailable as e:
                self._unavailable("reconcile", e)
            await asyncio.sleep(how.every_ms / 1000)

    def _unavailable(self, verb: str, error: Unavailable) -> None:
        self._telemetry.emit(told.STORE_UNAVAILABLE, store=self._store.name, verb=verb, error=str(error))
