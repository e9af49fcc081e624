"""``Runtime``: the verbs of the command line as Python, sync and async."""

from __future__ import annotations

import asyncio
import getpass
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from plaita import app
from plaita.base.clock import SystemClock
from plaita.base.errors import FlowCancelledException, InputError, WaitNotPossible
from plaita.base.json import Json
from plaita.control import acting, explaining, keeping, looking, starting
from plaita.control.flow_files import FlowFile, is_flow_file, of_object, read_flow_file
from plaita.control.shapes import Shape
from plaita.core.callback import FlowCallback
from plaita.core.errors import exception_of
from plaita.core.flow import Flow
from plaita.core.imports import import_all
from plaita.engine.failure import failure_from_json
from plaita.ports.backend import Backend
from plaita.ports.tasks import Decided
from plaita.ports.values import RunId
from plaita.runtime.driving import Drive, follow_through, go_on, move_woken
from plaita.settings import Settings, use_settings

T = TypeVar("T")


class Runtime:
    """A store, and this process as a driver of it.

        with Runtime.open() as rt:
            run = rt.start("order.yaml", {"amount": 120})
            run.wait()

    Synchronous methods may be called from any thread. Each has a twin that is awaited in the running loop, when opened
    with ``async with await Runtime.aopen()``: ``astart`` for ``start``, and so on; ``await_`` for ``wait``.
    """

    def __init__(self, settings: Settings, callbacks: Iterable[FlowCallback] = ()) -> None:
        self.settings = settings
        use_settings(settings)
        self.how = Drive(settings, callbacks=tuple(callbacks))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._store: Backend | None = None

    @classmethod
    def open(
        cls, store: str | None = None, settings: Settings | None = None, callbacks: Iterable[FlowCallback] = ()
    ) -> Self:
        """Open the store of the settings, or the one named; it is created when it does not exist.

        ``callbacks`` are told of what this process drives, after each step is stored.
        """
        runtime = cls(settings or app.read_settings(store), callbacks)
        runtime._loop = asyncio.new_event_loop()
        runtime._thread = threading.Thread(target=_turn, args=(runtime._loop,), name="plaita-runtime", daemon=True)
        runtime._thread.start()
        try:
            runtime._sync(runtime._open())
        except BaseException:
            runtime._stop_loop()
            raise
        return runtime

    @classmethod
    async def aopen(
        cls, store: str | None = None, settings: Settings | None = None, callbacks: Iterable[FlowCallback] = ()
    ) -> Self:
        """Open in the running loop."""
        runtime = cls(settings or app.read_settings(store), callbacks)
        await runtime._open()
        return runtime

    async def _open(self) -> None:
        import_all(self.settings.imports)
        self._store = app.open_store(self.settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def store(self) -> Backend:
        """The open store."""
        if self._store is None:
            raise RuntimeError("the runtime is closed")
        return self._store

    def ask(self, question: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        """Ask the store in its own loop; what ``StoreExecutionStorage(runtime)`` needs."""
        return self._sync(question(self.store))

    def _sync(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            what = "the runtime is closed" if self._store is None else "opened with aopen: await the a… methods"
            raise RuntimeError(what)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Give the store back."""
        if self._store is not None and self._loop is not None:
            self._sync(self.aclose())
            self._stop_loop()

    def _stop_loop(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop = self._thread = None

    async def aclose(self) -> None:
        """``close`` in the running loop."""
        if self._store is not None:
            store, self._store = self._store, None
            await store.close()

    def publish(self, flow: str | Path | Flow) -> Shape:
        """Publish a definition: ``{"flow_id", "version", "closure"}``."""
        return self._sync(self.apublish(flow))

    async def apublish(self, flow: str | Path | Flow) -> Shape:
        """``publish`` in the running loop."""
        read = as_flow(flow)
        found = await starting.publish(self.store, read.flow, read.name)
        return {"flow_id": found.flow_id, "version": found.version, "closure": found.closure}

    def start(self, flow: str | Path | Flow, value: Mapping[str, Json] | None = None, **options: Any) -> Execution:
        """Start a published flow by id, or a file or ``Flow`` as it is; ``options`` are those of ``StartOptions``."""
        return self._sync(self.astart(flow, value, **options))

    async def astart(
        self, flow: str | Path | Flow, value: Mapping[str, Json] | None = None, **options: Any
    ) -> Execution:
        """``start`` in the running loop."""
        chosen = starting.StartOptions(**options)
        if not isinstance(value, Mapping | None):
            raise InputError("$", f"the input of a flow is an object, not {type(value).__name__}")
        given = dict(value or {})
        if isinstance(flow, str) and not is_flow_file(flow):
            answer = await starting.start_published(self.store, flow, given, chosen)
        else:
            read = as_flow(flow)
            chosen = replace(chosen, imports=(*read.imports, *chosen.imports))
            answer = await starting.start_flow(self.store, read.flow, given, chosen, read.name)
        return Execution(self, answer.run_id)

    def flows(self) -> list[Shape]:
        """Published flows, the latest version of each: ``{"flow_id", "version", "closure", "published"}``."""
        return self._sync(self.aflows())

    async def aflows(self) -> list[Shape]:
        """``flows`` in the running loop."""
        items: list[Shape] = (await keeping.list_flows(self.store))["items"]
        return items

    def prune(self, days: int) -> int:
        """Remove executions that ended more than ``days`` ago; how many there were."""
        return self._sync(self.aprune(days))

    async def aprune(self, days: int) -> int:
        """``prune`` in the running loop."""
        return await keeping.prune(self.store, days)

    def backup(self, path: str | Path) -> None:
        """Copy the whole store while it is used; the copy appears whole or not at all."""
        self._sync(self.abackup(path))

    async def abackup(self, path: str | Path) -> None:
        """``backup`` in the running loop."""
        await self.store.backup(Path(path))

    def execution(self, execution_id: str) -> Execution:
        """A handle of an execution; nothing is read."""
        return Execution(self, RunId(execution_id))

    def executions(self, **filters: Any) -> list[Shape]:
        """Executions, newest first; filters: ``status flow_id business_key tag limit cursor``."""
        return self._sync(self.aexecutions(**filters))

    async def aexecutions(self, **filters: Any) -> list[Shape]:
        """``executions`` in the running loop."""
        items: list[Shape] = (await looking.list_executions(self.store, **filters))["items"]
        return items

    def inbox(self, by: str = "") -> list[HumanTask]:
        """Open tasks, oldest first, of one approver or of all."""
        return self._sync(self.ainbox(by))

    async def ainbox(self, by: str = "") -> list[HumanTask]:
        """``inbox`` in the running loop."""
        shapes = (await looking.inbox(self.store, actor=by))["items"]
        return [HumanTask(self, shape) for shape in shapes]

    def publish_event(self, event_type: str, data: Json = None, *, key: str | None = None, event_id: str = "") -> Shape:
        """Publish an event and drive what it woke: ``{"event_id", "matched", "woken"}``.

        An execution whose flow this process cannot load is left due for another one.
        """
        return self._sync(self.apublish_event(event_type, data, key=key, event_id=event_id))

    async def apublish_event(
        self, event_type: str, data: Json = None, *, key: str | None = None, event_id: str = ""
    ) -> Shape:
        """``publish_event`` in the running loop."""
        answer = await acting.publish_event(self.store, event_type, data, key, event_id)
        if answer.matched:
            await move_woken(self.store, event_type, lambda run_id: go_on(self.store, run_id, self.how))
        return {"event_id": answer.event_id, "matched": answer.matched, "woken": answer.woken}


class Execution:
    """A handle of one execution."""

    def __init__(self, runtime: Runtime, execution_id: RunId) -> None:
        self._runtime, self.id = runtime, execution_id

    def __repr__(self) -> str:
        return f"Execution({self.id!r})"

    def wait(self, timeout: float | None = None) -> Shape:
        """Drive until it ends or somebody must answer, through delays, at most ``timeout`` seconds; its shape."""
        return self._runtime._sync(self.await_(timeout))

    async def await_(self, seconds: float | None = None) -> Shape:
        """``wait`` in the running loop."""
        limit, store = None if seconds is None else int(seconds * 1000), self._runtime.store
        stays = partial(looking.goes_on_by_itself, store)
        await follow_through(store, self.id, self._runtime.how, stays, timeout_ms=limit)
        return await looking.inspect(store, self.id)

    def inspect(self) -> Shape:
        """Its shape now."""
        return self._runtime._sync(self.ainspect())

    async def ainspect(self) -> Shape:
        """``inspect`` in the running loop."""
        return await looking.inspect(self._runtime.store, self.id)

    def history(self) -> list[Shape]:
        """What happened, oldest first."""
        return self._runtime._sync(self.ahistory())

    async def ahistory(self) -> list[Shape]:
        """``history`` in the running loop."""
        items: list[Shape] = (await looking.history(self._runtime.store, self.id))["items"]
        return items

    def explain(self) -> list[Shape]:
        """Why it does not move: ``[{"code", "text", "since", "until", "do"}, …]``, what matters most first."""
        return self._runtime._sync(self.aexplain())

    async def aexplain(self) -> list[Shape]:
        """``explain`` in the running loop."""
        _, reasons = await explaining.explain(self._runtime.store, self.id)
        return [reason.as_json() for reason in reasons]

    def result(self) -> Json:
        """The output; raises the documented exception of a failed or cancelled execution, ``WaitNotPossible`` while it
        goes on."""
        return self._runtime._sync(self.aresult())

    async def aresult(self) -> Json:
        """``result`` in the running loop."""
        shape = await self.ainspect()
        match shape["status"]:
            case "completed":
                return shape["output"]
            case "error":
                raise exception_of(failure_from_json(shape["error"]))
            case "cancelled":
                raise FlowCancelledException(message=f"execution {self.id} was cancelled", kind="cancelled")
            case status:
                raise WaitNotPossible(f"execution {self.id} is {status}: there is no result yet", "wait() drives it")

    def resume(self, data: Json = None, wait: str = "") -> Shape:
        """Answer an open wait (by id or node; not needed when there is one) and drive on; its shape then.

        When this process cannot load the flow, the answer counts all the same: the shape has no such wait any more,
        and the execution is due for a process that can.
        """
        return self._runtime._sync(self.aresume(data, wait))

    async def aresume(self, data: Json = None, wait: str = "") -> Shape:
        """``resume`` in the running loop."""
        store = self._runtime.store
        await acting.resume(store, self.id, wait, data, whoami())
        await go_on(store, self.id, self._runtime.how)
        return await looking.inspect(store, self.id)

    def cancel(self) -> str:
        """End it; ``cancelled``, ``requested`` or ``already STATUS``."""
        return self._runtime._sync(self.acancel())

    async def acancel(self) -> str:
        """``cancel`` in the running loop."""
        return await acting.cancel(self._runtime.store, self.id, whoami())

    def retry(self) -> Shape:
        """Open a failed execution again at the failed node and drive it; its shape then.

        When this process cannot load the flow, the shape is ``suspended`` or ``queued``: due for a process that can.
        """
        return self._runtime._sync(self.aretry())

    async def aretry(self) -> Shape:
        """``retry`` in the running loop."""
        await acting.retry(self._runtime.store, self.id)
        await go_on(self._runtime.store, self.id, self._runtime.how)
        return await looking.inspect(self._runtime.store, self.id)

    def delete(self) -> None:
        """Remove it once it has ended."""
        self._runtime._sync(self.adelete())

    async def adelete(self) -> None:
        """``delete`` in the running loop."""
        await acting.delete(self._runtime.store, self.id)


class HumanTask:
    """A task as read; ``shape`` is its public form."""

    def __init__(self, runtime: Runtime, shape: Shape) -> None:
        self._runtime, self.shape = runtime, shape
        self.id: str = shape["task_id"]
        self.title: str = shape["title"]

    def approve(self, by: str = "", comment: str = "", form: Json = None) -> str:
        """Vote yes; ``recorded`` while votes are missing, else the outcome. Drives the execution on.

        When this process cannot load the flow, the vote counts all the same and the execution is due for another one.
        """
        return self._runtime._sync(self.aapprove(by, comment, form))

    async def aapprove(self, by: str = "", comment: str = "", form: Json = None) -> str:
        """``approve`` in the running loop."""
        return await self._vote(True, by, comment, form)

    def reject(self, by: str = "", comment: str = "", form: Json = None) -> str:
        """Vote no; as ``approve``."""
        return self._runtime._sync(self.areject(by, comment, form))

    async def areject(self, by: str = "", comment: str = "", form: Json = None) -> str:
        """``reject`` in the running loop."""
        return await self._vote(False, by, comment, form)

    async def _vote(self, approved: bool, by: str, comment: str, form: Json) -> str:
        store = self._runtime.store
        verdict = acting.Verdict(by or whoami(), approved, comment, form)
        task, answer = await acting.decide(store, self.id, verdict, SystemClock())
        if not isinstance(answer, Decided):
            return "recorded"
        await go_on(store, task.run_id, self._runtime.how)
        return answer.outcome


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    # What belongs to a loop, such as connections of nodes, hears of its end through its asynchronous generators.
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def as_flow(flow: str | Path | Flow) -> FlowFile:
    """A flow with its name and what loading it needs."""
    return of_object(flow) if isinstance(flow, Flow) else read_flow_file(flow)


def whoami() -> str:
    """The OS user, as whom decisions are recorded."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
