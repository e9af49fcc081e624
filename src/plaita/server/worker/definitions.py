"""Closures this process has loaded, and those it could not load."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from plaita.base.errors import FlowLoadError, NotFound
from plaita.core.closure import open_closure
from plaita.core.imports import import_all
from plaita.engine.program import Program
from plaita.ports.flows import FlowStore

KEPT_MAX = 256


class Definitions:
    """Programs by closure hash. ``lacks`` holds the hashes that failed, with the reason."""

    def __init__(self, store: FlowStore) -> None:
        self._store = store
        self._programs: OrderedDict[str, Program] = OrderedDict()
        self.lacks: dict[str, str] = {}

    async def program(self, closure: str, entry: str, imports: Sequence[str]) -> Program | None:
        """The program of a closure, or ``None`` when this process cannot load it (then ``lacks`` says why)."""
        key = f"{closure}{entry}"
        program = self._programs.get(key)
        if program is not None:
            self._programs.move_to_end(key)
            return program
        try:
            program = await self._load(closure, entry, imports)
        except (FlowLoadError, NotFound) as e:
            self.lacks[closure] = str(e)
            return None
        self._programs[key] = program
        if len(self._programs) > KEPT_MAX:
            self._programs.popitem(last=False)
        return program

    async def _load(self, closure: str, entry: str, imports: Sequence[str]) -> Program:
        import_all(imports)
        document = await self._store.closure(closure)
        if document is None:
            raise NotFound(f"definition {closure[:12]} is not in the store")
        program = open_closure(document).program
        if entry and entry not in program.graphs:
            raise NotFound(f"definition {closure[:12]} has no graph {entry!r}")
        return program
