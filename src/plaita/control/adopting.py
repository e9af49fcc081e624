"""Taking over what an installation of the published system left: its executions, and the flows they need."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from plaita.core.taking_over import Judged, judge
from plaita.ports.backend import Backend
from plaita.ports.published import PublishedRows

LEFT: Final = frozenset(("running", "no_definition", "other_definition", "unreadable", "refused"))
"""Verdicts after which an execution is neither here nor at its end."""


async def adopt(store: Backend, rows: PublishedRows, *, dry_run: bool = False) -> AsyncIterator[Judged]:
    """Each execution of the documented index, with what was done, or would be.

    Raises ``Unavailable``; what was taken over until then stays so, and a second time goes on with the rest.
    """
    if not dry_run:
        for name in await rows.flow_names("default"):
            await store.flow(name)
    for tenant in await rows.tenants():
        cursor, seen = "", set[str]()
        while True:
            ids, cursor = await rows.page(tenant, cursor)
            for execution_id in ids:
                # A page may show an id again.
                if execution_id not in seen:
                    judged = await judge(store, rows, tenant, execution_id, dry_run=dry_run)
                    if judged is not None:
                        yield judged
            seen.update(ids)
            if not cursor:
                break
