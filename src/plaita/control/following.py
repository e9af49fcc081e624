"""The history of an execution as it grows."""

from __future__ import annotations

from collections.abc import AsyncIterator

from plaita.control.looking import goes_on_by_itself, run_of
from plaita.control.shapes import Shape, entry_shapes
from plaita.ports.backend import Backend

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
        if not follow or not await goes_on_by_itself(store, run):
            return
        await store.hint(POLL_MS)
        run = await run_of(store, execution_id)
