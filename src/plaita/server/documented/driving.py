"""Moving one execution in the calling program, and what an answer to it says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from plaita.base.errors import NotSupported
from plaita.base.json import Json, encode
from plaita.control.looking import is_over, rests, run_of
from plaita.core.callback import FlowCallback
from plaita.ports.backend import Backend
from plaita.ports.queries import RunView, WaitView
from plaita.ports.runs import AlreadyResolved, NoSuchWait
from plaita.ports.values import RunId
from plaita.server.documented.errors import ResumeProtocolError
from plaita.server.worker import Surroundings, Worker, WorkerOptions
from plaita.settings import current_settings
from plaita.settings.current import environment

BOUND: Final = "__plaita_subscription_id"
ACTOR: Final = "program"
_LOOK_MS = 100


async def move(store: Backend, run_id: RunId, callbacks: Sequence[FlowCallback] = ()) -> RunView:
    """Move an execution until it rests or ends, here or by watching who holds it; what it is then.

    An error that would end it is not tried again. Raises ``NotSupported`` when this process cannot load its flow.
    """
    view = await run_of(store, run_id)
    worker = Worker(store, _options(store, view), Surroundings(callbacks=callbacks))
    stop = asyncio.Event()
    working = asyncio.create_task(worker.run(stop))
    try:
        while not (working.done() or view.closure in worker.lacks):
            view = await run_of(store, run_id)
            if is_over(view) or rests(view, await store.now_ms()):
                break
            await worker.changed(_LOOK_MS)
    finally:
        stop.set()
        await working
    view = await run_of(store, run_id)
    if not is_over(view) and view.closure in worker.lacks:
        raise NotSupported(f"this process cannot load the flow of execution {run_id}: {worker.lacks[view.closure]}")
    return view


def _options(store: Backend, view: RunView) -> WorkerOptions:
    settings = current_settings()
    return WorkerOptions(
        queues=(view.queue,),
        only=view.run_id,
        imports=settings.imports,
        renew_ms=min(settings.worker.renew_ms, store.lease_ms * 3 // 10),
        timezone=settings.engine.timezone,
        active_ms_max=settings.engine.execution_deadline_ms,
        attempts_max=1,
        env=environment(),
    )


async def is_held(store: Backend, view: RunView) -> bool:
    """Does a living process hold it?"""
    holder = None if view.token is None else view.token.nonce.rpartition(".")[0]
    return holder is not None and any(process.holder == holder for process in await store.living())


async def does_rest(store: Backend, view: RunView) -> bool:
    """Does it wait for something outside, with nothing to do now?"""
    return view.status == "suspended" and rests(view, await store.now_ms())


@dataclass(frozen=True, slots=True)
class Answer:
    """What a documented event says: which subscription it is for, its type, and the answer itself."""

    subscription: str
    event_type: str
    data: Json


def read_answer(data: Mapping[str, Any] | None) -> Answer:
    """Read the data of a resume: ``event_data``, or all the rest of it. Raises ``ResumeProtocolError``."""
    said = dict(data or {})
    subscription = said.pop("subscription_id", None) or said.pop(BOUND, None)
    said.pop(BOUND, None)
    if not isinstance(subscription, str):
        raise ResumeProtocolError(
            "the answer names no subscription; the execution waits on",
            "data needs subscription_id, the id of the wait: plaita inspect shows it",
        )
    return Answer(subscription, str(said.get("event_type") or ""), said.get("event_data", said))


async def give(store: Backend, run_id: RunId, answer: Answer) -> None:
    """Answer the wait. Raises ``ResumeProtocolError`` when it is not the one, or of another type."""
    waits = {wait.wait_id: wait for wait in await store.waits(run_id)}
    wait = next((waits[name] for name in waits if name == answer.subscription), None)
    if wait is None or not _fits(wait, answer.event_type):
        ids = ", ".join(waits) or "none"
        raise ResumeProtocolError(
            f"the answer is for {answer.subscription!r} ({answer.event_type or 'no type'}), which does not match an "
            f"open wait of execution {run_id}: {ids}; it waits on"
        )
    said = await store.wake(run_id, wait.wait_id, encode(answer.data), ACTOR)
    if isinstance(said, NoSuchWait | AlreadyResolved):
        raise ResumeProtocolError(f"the wait {wait.wait_id} of execution {run_id} was answered already")


def _fits(wait: WaitView, event_type: str) -> bool:
    return not (event_type and wait.event_type) or wait.event_type == event_type
