"""Reading executions, tasks and histories in their public shapes."""

from __future__ import annotations

from plaita.base.errors import NotFound
from plaita.base.ids import check_cursor, check_texts, check_whole
from plaita.control.shapes import Shape, entry_shapes, execution_shape, task_shape, wait_kind
from plaita.ports.backend import Backend
from plaita.ports.queries import RunView
from plaita.ports.tasks import Task
from plaita.ports.values import TERMINAL, RunId

RECENT = 1_000
LIMIT_MAX = 1_000_000


async def run_of(store: Backend, execution_id: str) -> RunView:
    """One execution. Raises ``NotFound`` naming the store."""
    check_texts(execution_id=execution_id)
    view = await store.run(RunId(execution_id))
    if view is None:
        hint = await _cut_short(store, execution_id) or "plaita ps lists executions"
        raise NotFound(f"there is no execution {execution_id!r} in {store.name}", hint)
    return view


async def _cut_short(store: Backend, execution_id: str) -> str:
    """A hint when the id is the beginning of one of the newest executions, such as a terminal cuts off."""
    recent, _ = await store.runs(limit=RECENT)
    meant = [view.run_id for view in recent if execution_id and view.run_id.startswith(execution_id)]
    return f"an id is given whole; did you mean {meant[0]!r}?" if len(meant) == 1 else ""


def is_over(view: RunView) -> bool:
    """Has the execution ended?"""
    return view.status in TERMINAL


def rests(view: RunView, now_ms: int) -> bool:
    """Does it wait for something outside, with nothing to do now? A backoff or a due timer is no rest, nor is being
    blocked for want of a process that can load it."""
    if view.blocked_reason:
        return view.due_ms is None
    due_later = view.due_ms is None or view.due_ms > now_ms
    waits = view.status == "suspended" and view.token is None and view.retry_ms is None and due_later
    starts_later = view.status == "queued" and view.not_before_ms is not None and view.not_before_ms > now_ms
    return waits or starts_later


async def goes_on_by_itself(store: Backend, view: RunView) -> bool:
    """Is something to be expected although nobody outside does anything: a delay, a try, a start, a child's end, or a
    slot for one that was answered?"""
    if is_over(view) or view.blocked_reason:
        return False
    if view.status != "suspended" or view.token is not None or view.retry_ms is not None:
        return True
    waits = [wait for wait in await store.waits(view.run_id, open_only=False) if wait.state != "closed"]
    return not waits or any(wait.state != "open" or wait_kind(wait) in ("delay", "child") for wait in waits)


async def inspect(store: Backend, execution_id: str) -> Shape:
    """An execution with its open waits."""
    view = await run_of(store, execution_id)
    return execution_shape(view, await store.waits(view.run_id))


def _cursor(text: str) -> str:
    """A cursor as a page gave it. Raises ``InputError`` for any other text."""
    check_cursor(text)
    return text


async def list_executions(
    store: Backend,
    *,
    status: str = "",
    flow_id: str = "",
    business_key: str = "",
    tag: str = "",
    limit: int = 50,
    cursor: str = "",
) -> Shape:
    """Executions, newest first: ``{"items": […], "next": cursor or null}``."""
    check_whole(limit, "limit", 1, LIMIT_MAX)
    check_texts(status=status, flow_id=flow_id, business_key=business_key, tag=tag)
    views, following = await store.runs(
        status=status, flow_id=flow_id, business_key=business_key, tag=tag, limit=limit, cursor=_cursor(cursor)
    )
    items = [execution_shape(v, await store.waits(v.run_id) if v.status == "suspended" else []) for v in views]
    return {"items": items, "next": following or None}


async def history(store: Backend, execution_id: str, *, after: int = 0, limit: int = 1000) -> Shape:
    """What happened, oldest first."""
    check_whole(limit, "limit", 1, LIMIT_MAX)
    view = await run_of(store, execution_id)
    entries = await store.history(view.run_id, after=after, limit=limit)
    return {"items": entry_shapes(entries, after), "next": entries[-1].seq if len(entries) == limit else None}


async def task_of(store: Backend, task_id: str) -> Task:
    """One task. Raises ``NotFound`` naming the store."""
    check_texts(task_id=task_id)
    task = await store.task(task_id)
    if task is None:
        recent, _ = await store.inbox(limit=RECENT)
        meant = [one.task_id for one in recent if task_id and one.task_id.startswith(task_id)]
        hint = f"an id is given whole; did you mean {meant[0]!r}?" if len(meant) == 1 else "plaita inbox lists tasks"
        raise NotFound(f"there is no task {task_id!r} in {store.name}", hint)
    return task


async def inbox(store: Backend, *, actor: str = "", limit: int = 100, cursor: str = "") -> Shape:
    """Open tasks, oldest first."""
    check_texts(actor=actor)
    check_whole(limit, "limit", 1, LIMIT_MAX)
    tasks, following = await store.inbox(actor=actor, limit=limit, cursor=_cursor(cursor))
    return {"items": [task_shape(t) for t in tasks], "next": following or None}
