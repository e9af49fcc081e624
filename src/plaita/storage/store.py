"""The documented storages over a store: executions that any process moves, flows that are published."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

from plaita.base.errors import Conflict, InputError
from plaita.base.ids import check_id
from plaita.base.json import Json, admit, decode
from plaita.base.moment import iso
from plaita.core.closure import definition_of
from plaita.core.flow import Flow
from plaita.core.published import publish
from plaita.core.saved import Identity, context_of_frames, loadable
from plaita.ports.backend import Backend
from plaita.ports.queries import RunView
from plaita.ports.runs import Deleted, NotTerminal, SubmitConflict, Tombstoned
from plaita.ports.values import RunId
from plaita.storage.adopting import adoption_of
from plaita.storage.base import (
    ExecutionState,
    ExecutionStorage,
    FlowStorage,
    check_field,
    check_owner,
    check_page,
    has_values,
    ordered,
)
from plaita.storage.bridge import Bridge
from plaita.storage.memory import id_of

EVENTS_MAX = 500
"""Entries of a timeline that a state shows."""
HASH_ALGO = "flow-closure-sha256"
_PAGE = 200
_ROW_FIELDS = frozenset({
    "execution_id", "flow_id", "flow_version", "flow_hash", "tenant_id", "status", "start_time", "end_time",
})  # fmt: skip


class StoreExecutionStorage(ExecutionStorage):
    """The executions of a store. ``store`` is a ``Runtime`` or an ``OpenedStore``.

    Loading puts the documented state together from what the store has. Saving takes over an execution that began
    elsewhere: its id must be free, and from then on the processes of the store move it.
    """

    def __init__(self, store: Bridge) -> None:
        self._store = store

    @property
    def store(self) -> Bridge:
        """The store, and the loop it lives on."""
        return self._store

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def save_execution_state(self, execution_id: str, state: ExecutionState) -> bool:
        """Take an execution over. Raises ``Conflict`` when the id is taken.

        Its flow must be published here, unless it is completed or cancelled: else ``NotFound``.
        """
        check_owner(execution_id, state)
        check_id(execution_id, "execution_id")
        admit(state.context, "context")
        self._store.ask(lambda backend: _adopt(backend, state))
        return True

    def load_execution_state(self, execution_id: str) -> ExecutionState | None:
        return self._store.ask(lambda backend: _load(backend, execution_id))

    def delete_execution_state(self, execution_id: str) -> bool:
        """Remove an ended execution. Raises ``Conflict`` while it lives."""
        return self._store.ask(lambda backend: _delete(backend, execution_id))

    def list_executions(
        self, query: Mapping[str, Any] | None = None, order_by: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[ExecutionState]:
        """States by fields of the row; in order of their start unless said otherwise. Raises ``InputError``.

        In order of their start, either way, no more rows are read than the page needs.
        """
        wanted, by = dict(query or {}), order_by or "start_time"
        for where, name in (*(("query", n) for n in wanted), ("order_by", by.removeprefix("-"))):
            check_field(name, where)
            if name not in _ROW_FIELDS:
                raise InputError(where, f"{name!r} cannot be asked for; there are: {', '.join(sorted(_ROW_FIELDS))}")
        check_page(limit, offset)
        return self._store.ask(lambda backend: _page(backend, wanted, by, limit, offset))


class StoreFlowStorage(FlowStorage):
    """The published flows of a store."""

    def __init__(self, store: Bridge) -> None:
        self._store = store

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def save_flow(self, flow: dict[str, Any]) -> bool:
        """Publish a flow. Raises ``FlowLoadError`` with everything that is wrong with it."""
        if id_of(flow) is None:
            return False
        read = Flow.model_validate(admit(flow, "flow"))
        self._store.ask(lambda backend: publish(backend, read))
        return True

    def get_flow(self, flow_id: str, version: str | None = None) -> dict[str, Any] | None:
        """That version, or the one published last when it is unknown or not said."""
        return self._store.ask(lambda backend: _flow(backend, flow_id, version or ""))


async def _flow(backend: Backend, flow_id: str, version: str) -> dict[str, Any] | None:
    found = await backend.flow(flow_id, version) or await backend.flow(flow_id)
    document = None if found is None else await backend.closure(found.closure)
    return None if document is None else dict(definition_of(document))


async def _adopt(backend: Backend, state: ExecutionState) -> None:
    if await backend.run(RunId(state.execution_id)) is not None:
        raise _taken(state.execution_id)
    start, adoption = await adoption_of(backend, state)
    match await backend.adopt(start, adoption):
        case SubmitConflict(run_id):
            raise _taken(run_id)
        case Tombstoned(run_id):
            raise Conflict(f"execution {run_id!r} existed and was deleted; its id stays taken", "choose another id")


def _taken(run_id: str) -> Conflict:
    return Conflict(f"execution {run_id!r} exists: its state is the store's own", "only a free id is taken over")


async def _delete(backend: Backend, execution_id: str) -> bool:
    answer = await backend.delete(RunId(execution_id))
    if isinstance(answer, NotTerminal):
        raise Conflict(f"execution {execution_id} is {answer.status}", f"plaita cancel {execution_id} first")
    return isinstance(answer, Deleted)


async def _page(
    backend: Backend, wanted: dict[str, Any], order_by: str, limit: int, offset: int
) -> list[ExecutionState]:
    by_start = order_by.removeprefix("-") == "start_time"
    rows: list[ExecutionState] = []
    if limit:
        async for row in _rows(backend, wanted, oldest_first=order_by != "-start_time"):
            rows += [row] if has_values(row, wanted) else []
            if by_start and len(rows) == offset + limit:
                break
    rows = rows if by_start else ordered(rows, order_by)
    states = [await _load(backend, row.execution_id) for row in rows[offset : offset + limit]]
    return [state for state in states if state is not None]


async def _rows(backend: Backend, wanted: dict[str, Any], *, oldest_first: bool) -> AsyncIterator[ExecutionState]:
    """Rows in order of their start, without their contexts."""
    cursor, more = "", True
    while more:
        views, cursor = await backend.runs(
            status=wanted.get("status") or "",
            flow_id=wanted.get("flow_id") or "",
            tenant=wanted.get("tenant_id") or "",
            limit=_PAGE,
            cursor=cursor,
            oldest_first=oldest_first,
        )
        for view in views:
            yield ExecutionState(**_row(view), context={})
        more = bool(cursor)


def _row(view: RunView) -> dict[str, Any]:
    return {
        "execution_id": view.run_id,
        "flow_id": view.flow_id,
        "flow_version": view.flow_version or None,
        "flow_hash": view.closure or None,
        "flow_hash_algo": HASH_ALGO if view.closure else None,
        "tenant_id": view.tenant,
        "status": view.status,
        "start_time": iso(view.submitted_ms),
        "end_time": iso(view.ended_ms),
    }


async def _load(backend: Backend, execution_id: str) -> ExecutionState | None:
    run_id = RunId(execution_id)
    view = await backend.run(run_id)
    given = await backend.input(run_id)
    if view is None or given is None:
        return None
    flow = loadable(await backend.closure(view.closure))
    who = Identity(execution_id, view.flow_id, decode(given))
    context = context_of_frames(await backend.frames(run_id), who, flow)
    output = None if view.output is None else decode(view.output)
    if view.status == "completed" and flow is not None:
        ends = [node.id for node in flow.resolve_nodes() if node.node_type == "end"]
        if len(ends) == 1:
            context["$NODE"][ends[0]], context["$LAST_NODE"] = output, ends[0]
    events, updated = await _timeline(backend, run_id)
    return ExecutionState(
        **_row(view), context=context, error=_error(view), output=output, timeline=events, last_update_time=updated
    )


def _error(view: RunView) -> dict[str, Json] | None:
    if view.error is None:
        return None
    error: dict[str, Json] = decode(view.error)
    path = error.get("path") or [None]
    return {**error, "failed_node": path[-1]}


async def _timeline(backend: Backend, run_id: RunId) -> tuple[dict[str, Json], str | None]:
    """The history as the documented timeline, and the time of its last entry."""
    kept: deque[dict[str, Json]] = deque(maxlen=EVENTS_MAX)
    after = 0
    while entries := await backend.history(run_id, after=after):
        for entry in entries:
            facts = decode(entry.data)
            told = {k: v for k, v in facts.items() if k != "event"}
            at = {"seq": entry.seq, "at": iso(entry.at_ms), "at_ms": entry.at_ms, "type": facts.get("event")}
            kept.append(told | at)
        after = entries[-1].seq
    timeline = {"events": list(kept), "dropped": after - len(kept), "max_events": EVENTS_MAX}
    return timeline, kept[-1]["at"] if kept else None
