"""A branch that nobody joins becomes a run of its own: the scope it sees, as a document and back as frames.

The document is ``{"input": …, "scope": [level, …]}``, levels from the parallel's own outwards; a level is
``{"input", "nodes", "globals", "extra", "last"}``. An ``input`` that is left out inherits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plaita.base.json import Json
from plaita.engine.effects import Detached
from plaita.engine.expression.scope import ABSENT
from plaita.engine.frames import Frame
from plaita.engine.program import Graph
from plaita.engine.types import conform

if TYPE_CHECKING:
    from plaita.engine.machine import Run


def detach(frame: Frame, key: str, graph: Graph, value: Any) -> Detached:
    """The effect that starts a branch of ``frame`` as a run of its own."""
    if graph.input_type is not None and value is not ABSENT:
        value = conform(graph.input_type, value, "$.input")
    document: dict[str, Json] = {"scope": snapshot(frame)}
    if value is not ABSENT:
        document["input"] = value
    return Detached(key, graph.entry, document)


def snapshot(frame: Frame) -> list[Json]:
    """The scope a frame gives to its kids: one level for itself and each lexical parent, outwards."""
    levels: list[Json] = []
    at: Frame | None = frame
    while at is not None:
        level: dict[str, Json] = {"nodes": dict(at.nodes), "globals": at.globals, "last": at.last_id}
        if at.input is not ABSENT:
            level["input"] = at.input
        if at.extra:
            level["extra"] = at.extra
        levels.append(level)
        at = at.parent
    return levels


def detached_root(run: Run, entry: str, document: Json) -> Frame:
    """The root frame of a detached run. Its lexical parents are frames that never run."""
    graph = run.program.graphs[entry]
    frame = Frame(run, graph, _scope(run, graph.parent, document["scope"]), None, "")
    frame.begin(document.get("input", ABSENT))
    return frame


def _scope(run: Run, graph: Graph | None, levels: Sequence[Json]) -> Frame | None:
    if graph is None or not levels:
        return None
    level = levels[0]
    frame = Frame(run, graph, _scope(run, graph.parent, levels[1:]), None, "")
    frame.begin(level.get("input", ABSENT))
    frame.nodes, frame.globals, frame.extra = level["nodes"], level["globals"], level.get("extra")
    frame.last = graph.nodes.get(level["last"])
    return frame
