"""Looking after a store: what has been published, and what may go."""

from __future__ import annotations

from plaita.base.duration import DAY_MS
from plaita.base.ids import check_whole
from plaita.base.moment import iso
from plaita.control.shapes import Shape
from plaita.ports.backend import Backend

DAYS_MAX = 36_500


async def list_flows(store: Backend) -> Shape:
    """Published flows, the latest version of each, by id."""
    items = [
        {"flow_id": f.flow_id, "version": f.version, "closure": f.closure, "published": iso(f.published_ms)}
        for f in await store.flows()
    ]
    return {"items": items, "next": None}


async def prune(store: Backend, days: int) -> int:
    """Remove executions that ended more than ``days`` ago; answers how many. Raises ``InputError``."""
    check_whole(days, "days", 0, DAYS_MAX)
    return await store.prune(await store.now_ms() - days * DAY_MS)
