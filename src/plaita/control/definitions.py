"""Published definitions, one by one."""

from __future__ import annotations

from collections.abc import Sequence

from plaita.base.errors import NotFound
from plaita.base.ids import check_texts
from plaita.base.moment import iso
from plaita.base.spelling import suggest
from plaita.control.shapes import Shape
from plaita.core.closure import definition_of, open_closure
from plaita.core.flow import Flow
from plaita.core.imports import import_all
from plaita.ports.backend import Backend
from plaita.ports.flows import FlowVersion
from plaita.ports.queries import RunView

RUNS_MAX = 10_000


async def find(store: Backend, flow_id: str, version: str = "") -> tuple[FlowVersion, bytes]:
    """A published version (the latest when none is named) and its closure. Raises ``NotFound``."""
    check_texts(flow_id=flow_id, version=version)
    found = await store.flow(flow_id, version)
    if found is None:
        known = [f.flow_id for f in await store.flows()]
        what = f"flow {flow_id!r}" + (f" version {version!r}" if version else "")
        hint = suggest(flow_id, known) or "plaita publish FLOW publishes a file"
        raise NotFound(f"{what} is not published in {store.name}", hint)
    document = await store.closure(found.closure)
    if document is None:
        raise NotFound(f"the definition of flow {flow_id!r} is missing in {store.name}", "publish it again")
    return found, document


async def published(store: Backend, flow_id: str, version: str, imports: Sequence[str]) -> Flow:
    """The flow itself. Raises ``NotFound``, and ``FlowLoadError`` when this process cannot load it."""
    _, document = await find(store, flow_id, version)
    import_all(imports)
    return open_closure(document)


async def describe(store: Backend, flow_id: str, version: str = "") -> Shape:
    """A published flow: ``{"flow_id", "version", "closure", "published", "versions", "executions", "definition"}``.

    ``versions`` is the latest first; ``executions`` counts by status over the newest 10,000.
    """
    found, document = await find(store, flow_id, version)
    versions = [{"version": v.version, "published": iso(v.published_ms)} for v in await store.versions(flow_id)]
    counts: dict[str, int] = {}
    for run in await _runs(store, flow_id):
        counts[run.status] = counts.get(run.status, 0) + 1
    return {
        "flow_id": found.flow_id,
        "version": found.version,
        "closure": found.closure,
        "published": iso(found.published_ms),
        "versions": versions,
        "executions": dict(sorted(counts.items())),
        "definition": definition_of(document),
    }


async def _runs(store: Backend, flow_id: str) -> list[RunView]:
    runs: list[RunView] = []
    cursor = ""
    while len(runs) < RUNS_MAX:
        page, cursor = await store.runs(flow_id=flow_id, limit=1_000, cursor=cursor)
        runs += page
        if not cursor:
            break
    return runs
