"""``EventStore``, ``TaskStore`` and ``FlowStore`` over a gate."""

from __future__ import annotations

from plaita.backends.gate import Gate
from plaita.backends.rows import Rows
from plaita.backends.verbs.decide import decide
from plaita.backends.verbs.publish import publish
from plaita.ports.events import Published
from plaita.ports.flows import FlowVersion
from plaita.ports.tasks import DecideAnswer, Decision, Task


class GatedDesk:
    """Events, people and definitions."""

    _gate: Gate

    async def publish(self, event_id: str, event_type: str, key: str | None, data: bytes) -> Published:
        return await self._gate.write(lambda rows: publish(rows, event_id, event_type, key, data))

    async def task(self, task_id: str) -> Task | None:
        return self._gate.read(lambda rows: rows.tasks.load(task_id))

    async def inbox(self, *, actor: str = "", limit: int = 100, cursor: str = "") -> tuple[list[Task], str]:
        found = self._gate.read(lambda rows: rows.tasks.inbox(actor, limit + 1, cursor))
        following = found[limit - 1][0] if len(found) > limit else ""
        return [task for _, task in found[:limit]], following

    async def decide(self, task_id: str, version: int, decision: Decision) -> DecideAnswer:
        return await self._gate.write(lambda rows: decide(rows, task_id, version, decision))

    async def put_closure(self, closure: str, document: bytes) -> None:
        await self._gate.write(lambda rows: rows.shelf.put_closure(closure, document, rows.now))

    async def closure(self, closure: str) -> bytes | None:
        return self._gate.read(lambda rows: rows.shelf.closure(closure))

    async def publish_flow(self, flow_id: str, version: str, closure: str) -> FlowVersion:
        def verb(rows: Rows) -> FlowVersion:
            replaced = rows.shelf.flow(flow_id, version)
            if replaced is not None:
                # Whoever has just looked the version up may be about to start with what it was.
                rows.shelf.use_closure(replaced.closure, rows.now)
            published = FlowVersion(flow_id, version, closure, rows.now)
            rows.shelf.put_flow(published)
            return published

        return await self._gate.write(verb)

    async def flow(self, flow_id: str, version: str = "") -> FlowVersion | None:
        return self._gate.read(lambda rows: rows.shelf.flow(flow_id, version))

    async def versions(self, flow_id: str) -> list[FlowVersion]:
        return self._gate.read(lambda rows: rows.shelf.versions(flow_id))

    async def flows(self) -> list[FlowVersion]:
        return self._gate.read(lambda rows: rows.shelf.flows())
