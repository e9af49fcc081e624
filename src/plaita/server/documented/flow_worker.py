"""``FlowWorker``: start and resume executions in the calling program, over a store."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from plaita.base.errors import InputError, ResumeError
from plaita.base.json import decode
from plaita.base.tenancy import current_tenant
from plaita.control import acting
from plaita.control.starting import StartOptions, start_flow
from plaita.core.callback import FlowCallback
from plaita.core.errors import ResumeType, exception_of
from plaita.core.fingerprint import compute_flow_definition_hash
from plaita.core.flow import Flow
from plaita.engine.failure import failure_from_json
from plaita.event.core import EventBus
from plaita.ports.backend import Backend
from plaita.ports.queries import RunView
from plaita.ports.values import TERMINAL, RunId
from plaita.server.documented.cache import RecentlyRead
from plaita.server.documented.driving import ACTOR, does_rest, give, is_held, move, read_answer
from plaita.server.documented.errors import (
    ExecutionIdConflictError,
    ExecutionUnknown,
    NodeFailureTerminalizedError,
    ResumeProtocolError,
)
from plaita.server.documented.ground import ground_of
from plaita.server.execution_lease import (
    DEFAULT_LEASE_TTL_SECONDS,
    ExecutionLease,
    ExecutionLeaseError,
    new_holder_token,
)
from plaita.storage.base import ExecutionState, ExecutionStorage, FlowStorage

T = TypeVar("T")


class FlowWorker:
    """Starts and resumes executions and moves them until they wait or end, in the thread that calls.

    ``execution_storage`` is one of ours: of a store, and then other processes move its executions too; or in memory.
    A store keeps leases, waits and timers itself: ``event_bus`` and ``lease_ttl_seconds`` have no effect, and
    ``execution_lease`` is asked in addition. ``callback_handlers`` are told of flows and nodes.

    A step is ``{id, type, name, result, branch, context, is_end, is_suspend, execution_id}``. An error that ends the
    execution is raised, and not tried again.
    """

    PERSIST_EVERY_N_STEPS: ClassVar[int] = 1

    def __init__(
        self,
        execution_storage: ExecutionStorage,
        flow_storage: FlowStorage,
        event_bus: EventBus | None = None,
        cache_size: int = 100,
        cache_ttl: int = 300,
        callback_handlers: Sequence[FlowCallback] | None = None,
        execution_lease: ExecutionLease | None = None,
        lease_ttl_seconds: int = DEFAULT_LEASE_TTL_SECONDS,
    ) -> None:
        self.execution_storage, self.flow_storage, self.event_bus = execution_storage, flow_storage, event_bus
        self.execution_lease, self.lease_ttl_seconds = execution_lease, lease_ttl_seconds
        self.callback_handlers = tuple(callback_handlers or ())
        self.flow_definition_cache: RecentlyRead[Flow] = RecentlyRead(cache_size, cache_ttl)
        """Flows by ``tenant:flow:version``; ``latest`` when no version was asked for."""
        self._documents: RecentlyRead[Mapping[str, Any]] = RecentlyRead(cache_size, cache_ttl)
        self._ground = ground_of(execution_storage)

    def start_flow(
        self,
        flow_id: str,
        params: Mapping[str, Any] | None,
        version: str | None = None,
        execution_id: str | None = None,
        dedup_key: str | None = None,
        **_documented: Any,
    ) -> dict[str, Any]:
        """Start and move; the last step. One that exists is told of as ``resume_flow`` does, and goes on.

        ``dedup_key`` finds an execution that was started under it before. Raises ``ExecutionUnknown`` for an unknown
        flow, ``ExecutionIdConflictError``, ``InputError``, and ``NodeFailureTerminalizedError`` at its end in an error.
        """
        there = self._known(execution_id, dedup_key)
        if there is not None:
            return self._again(flow_id, there)
        flow, tenant = self.get_flow_definition(flow_id, version), current_tenant()
        chosen = StartOptions(execution_id=execution_id or "", business_key=dedup_key or "", tenant=tenant)
        given = dict(params or {})
        run_id = self._ask(lambda store: _begun(store, flow, given, chosen, flow_id))
        with self._leased(run_id, "start"):
            return self._moved(run_id)

    def resume_flow(
        self,
        flow_id: str,
        execution_id: str,
        resume_type: str,
        data: Mapping[str, Any] | None = None,
        delivery_count: int | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Go on: ``event`` answers the wait that ``data`` names, ``cancel`` ends it, ``retry`` opens one that failed,
        ``continue`` moves it. ``{execution_id, status, already_suspended}`` (or ``already_terminal``) when there is
        nothing to do.

        Raises ``ExecutionUnknown``, ``InputError`` for another flow, ``ResumeProtocolError`` for an answer that is not
        meant for it, ``ExecutionLeaseError`` while somebody else moves it.
        """
        if not self._ground.bring(execution_id, self):
            raise ExecutionUnknown(f"there is no execution {execution_id!r}", "plaita ps lists executions")
        view = self._view(execution_id)
        if view.flow_id != flow_id:
            raise InputError("flow_id", f"execution {execution_id!r} is of flow {view.flow_id!r}, not of {flow_id!r}")
        if resume_type not in {kind.value for kind in ResumeType}:
            known = ", ".join(kind.value for kind in ResumeType)
            raise ResumeError(message=f"resume_type {resume_type!r} is none of {known}", kind="resume_refused")
        if view.status in TERMINAL and not (view.status == "error" and resume_type == ResumeType.RETRY):
            return _ended(view)
        with self._leased(view.run_id, "resume"):
            return self._resumed(view, resume_type, data)

    def get_flow_definition(self, flow_id: str, version: str | None = None) -> Flow:
        """The flow; the same object while it is in the cache. Raises ``ExecutionUnknown``, ``FlowLoadError``."""
        return self.get_flow_document(flow_id, version)[1]

    def get_flow_definition_hash(self, flow_id: str, version: str | None = None) -> str:
        """The documented fingerprint of the definition as it was written."""
        return compute_flow_definition_hash(self.get_flow_document(flow_id, version)[0])

    def get_flow_document(self, flow_id: str, version: str | None) -> tuple[Mapping[str, Any], Flow]:
        """The definition as it was written, and the flow."""
        key = f"{current_tenant()}:{flow_id}:{version or 'latest'}"
        flow, document = self.flow_definition_cache.get(key), self._documents.get(key)
        if flow is None or document is None:
            document = self.flow_storage.get_flow(flow_id, version)
            if document is None:
                raise ExecutionUnknown(f"there is no flow {flow_id!r}", "plaita flows lists what is published")
            flow = Flow.model_validate(document)
            self.flow_definition_cache[key], self._documents[key] = flow, document
        return document, flow

    def _known(self, execution_id: str | None, dedup_key: str | None) -> RunView | None:
        if dedup_key:
            found, _ = self._ask(lambda store: store.runs(business_key=dedup_key, tenant=current_tenant(), limit=1))
            if found:
                return found[0]
        if execution_id and self._ground.bring(execution_id, self):
            return self._view(execution_id)
        return None

    def _again(self, flow_id: str, view: RunView) -> dict[str, Any]:
        if view.flow_id != flow_id:
            raise ExecutionIdConflictError(f"execution {view.run_id!r} is of flow {view.flow_id!r}, not of {flow_id!r}")
        return self.resume_flow(flow_id, view.run_id, ResumeType.CONTINUE)

    def _resumed(self, view: RunView, resume_type: str, data: Mapping[str, Any] | None) -> dict[str, Any]:
        run_id = view.run_id
        match resume_type:
            case ResumeType.EVENT:
                answer = read_answer(data)
                self._ask(lambda store: give(store, run_id, answer))
            case ResumeType.CANCEL:
                self._ask(lambda store: acting.cancel(store, run_id, ACTOR))
                self._ground.show(run_id)
                return _ended(self._view(run_id))
            case ResumeType.RETRY if view.status == "error":
                self._ask(lambda store: acting.retry(store, run_id))
            case ResumeType.TIMEOUT:
                self._ask(lambda store: _check_overdue(store, run_id))
            case _:
                if self._ask(lambda store: is_held(store, view)):
                    raise ExecutionLeaseError(f"execution {run_id} is moved by another process")
                if self._ask(lambda store: does_rest(store, view)):
                    return {"execution_id": run_id, "status": "suspended", "already_suspended": True}
        return self._moved(run_id)

    def _moved(self, run_id: RunId) -> dict[str, Any]:
        view = self._ask(lambda store: move(store, run_id, self.callback_handlers))
        state = self._ground.show(run_id)
        if view.status == "error":
            failure = failure_from_json(decode(view.error or b"null"))
            text = f"execution {run_id} ended in an error: {failure.message}"
            raise NodeFailureTerminalizedError(text) from exception_of(failure)
        return self._step(view, state)

    def _step(self, view: RunView, state: ExecutionState) -> dict[str, Any]:
        context = state.context
        last = context.get("$LAST_NODE")
        node = self._node(view, last)
        return {
            "id": last,
            "type": None if node is None else node.node_type,
            "name": None if node is None else node.name,
            "result": state.output if view.status == "completed" else (context.get("$NODE") or {}).get(last),
            "branch": "",
            "context": context,
            "is_end": view.status in TERMINAL,
            "is_suspend": view.status == "suspended",
            "execution_id": view.run_id,
        }

    def _node(self, view: RunView, node_id: str | None) -> Any:
        try:
            flow = self.get_flow_definition(view.flow_id, view.flow_version or None)
        except ExecutionUnknown:
            return None
        return None if node_id is None else flow.find_node_by_id(node_id)

    def _view(self, execution_id: str) -> RunView:
        view = self._ask(lambda store: store.run(RunId(execution_id)))
        if view is None or view.tenant != current_tenant():
            raise ExecutionUnknown(f"there is no execution {execution_id!r}", "plaita ps lists executions")
        return view

    def _ask(self, question: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        return self._ground.bridge.ask(question)

    @contextmanager
    def _leased(self, run_id: RunId, prefix: str) -> Iterator[None]:
        """Hold the lease of the program's own meanwhile, if it has one."""
        lease, holder = self.execution_lease, new_holder_token(prefix)
        if lease is None:
            yield
            return
        if not lease.try_acquire(run_id, holder, self.lease_ttl_seconds):
            raise ExecutionLeaseError(f"execution {run_id} is moved by another process")
        try:
            yield
        finally:
            lease.release(run_id, holder)


async def _begun(store: Backend, flow: Flow, value: dict[str, Any], chosen: StartOptions, fallback: str) -> RunId:
    return (await start_flow(store, flow, value, chosen, fallback)).run_id


async def _check_overdue(store: Backend, run_id: RunId) -> None:
    """A deadline is kept by the store: a message may say that it has passed, and not make it so."""
    now = await store.now_ms()
    if not any(w.deadline_ms is not None and w.deadline_ms <= now for w in await store.waits(run_id)):
        raise ResumeProtocolError(f"no deadline of execution {run_id} has passed; it waits on")


def _ended(view: RunView) -> dict[str, Any]:
    return {
        "execution_id": view.run_id,
        "status": view.status,
        "already_terminal": True,
        "result": None if view.output is None else decode(view.output),
        "error": None if view.error is None else decode(view.error),
    }
