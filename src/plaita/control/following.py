"""The history of an execution as it grows."""

from __future__ import annotations

from collections.abc import AsyncIterator

from plaita.control.looking import run_of
from plaita.control.shapes import Shape, entry_shapes, wait_kind
from plaita.ports.backend import Backend
from plaita.ports.queries import RunView
from plaita.ports.values import TERMINAL

PAGE = 500
POLL_MS = 200


async def entries(store: Backend, execution_id: str, *, follow: bool) -> AsyncIterator[Shape]:
    """Every entry, oldest first: ``{"seq", "at", "event", …}``. ``follow``: until it ends, or waits for somebody."""
    run, seen = await run_of(store, execution_id), 0
    while True:
        page = await store.history(run.run_id, after=seen, limit=PAGE)
        for shape in entry_shapes(page, seen):
            seen = shape["seq"]
            yield shape
        if page:
            continue
        if not follow or await _rests(store, run):
            return
        await store.hint(POLL_MS)
        run = await run_of(store, execution_id)


async def _rests(store: Backend, run: RunView) -> bool:
    """Is nothing to be expected without somebody outside? Delays, retries and children are expected."""
    if run.status in TERMINAL or run.blocked_reason:
        return True
    if run.status != "suspended" or run.token is not None or run.retry_ms is not None:
        return False
    waits = await store.waits(run.run_id)
    return all(wait_kind(wait) not in ("delay", "child") for wait in waits) if waits else run.due_ms is None
