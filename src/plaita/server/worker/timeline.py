"""What an attempt tells: history entries for the store, the same for whoever watches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plaita.base.json import Json, encode
from plaita.base.redaction import redact
from plaita.control.shapes import kind_of_wait
from plaita.core.callback import CallbackManager, FlowCallback
from plaita.core.calls import arguments_of
from plaita.core.telling import CallbackTrace
from plaita.engine.effects import Call, Effects, Event, Raised, Returned
from plaita.engine.frames import Frame
from plaita.engine.machine import Run
from plaita.engine.program import CNode
from plaita.engine.tracing import Told
from plaita.telemetry import events as told
from plaita.telemetry.sink import Telemetry

TRAIL_MAX = 100
"""Pure nodes named in one entry; further ones are only counted."""
PREVIEW_BYTES_MAX = 4096

Observer = Callable[[str, dict[str, Any]], None]
"""Told of every entry at once: execution id and entry. Must not raise."""


class Timeline:
    """Entries since the last settle, and what callbacks are told after it. ``trace`` is handed to the machine."""

    def __init__(
        self, run_id: str, telemetry: Telemetry, observer: Observer | None, callbacks: Sequence[FlowCallback] = ()
    ) -> None:
        self._run_id, self._telemetry, self._observer = run_id, telemetry, observer
        self._told = CallbackTrace(CallbackManager(callbacks), deferred=True) if callbacks else None
        self._entries: list[dict[str, Json]] = []
        self._trail: list[str] = []
        self._passed = 0
        self._returned: list[dict[str, Json]] = []
        self._taken: list[dict[str, Json]] = []
        self._secrets: frozenset[str] | None = None
        self._names: dict[str, str] = {}

    def trace(self, kind: Told, frame: Frame, cn: CNode | None, value: Any) -> None:
        """The machine ran a pure node, or something that only callbacks are told of."""
        if self._told is not None:
            self._told(kind, frame, cn, value)
        if kind != "end" or cn is None:
            return
        self._passed += 1
        if len(self._trail) < TRAIL_MAX:
            self._trail.append(frame.where(cn.id))
        if self._observer is not None:
            self._observer(self._run_id, {"event": "node", "node": frame.where(cn.id), "type": cn.type})

    def add(self, event: str, **fields: Json) -> None:
        """One more entry, after the pure nodes that ran before it."""
        self._name_passed()
        entry = {"event": event, **fields}
        self._entries.append(entry)
        if self._observer is not None:
            self._observer(self._run_id, entry)

    def name_of(self, call: Call) -> str:
        """The address of a call's node for people, until it has come back."""
        name = self._names.get(call.id)
        if name is None:
            name = self._names[call.id] = call.frame.where(call.node.id)
        return name

    def came_back(self, event: Event) -> None:
        """A call ended. That stays true whatever becomes of the settle that carries it."""
        match event:
            case Returned(call_id, value):
                node = self._names.pop(call_id, call_id)
                self.add("node_end", node=node, output=self._preview(node, redact(value, self._secrets or ())))
                self._returned.append(self._entries[-1])
            case Raised(call_id, failure):
                node = self._names.pop(call_id, call_id)
                self.add("node_error", node=node, kind=failure.kind, code=failure.code, message=failure.message[:1000])
                self._returned.append(self._entries[-1])

    def advanced(self, run: Run, effects: Effects) -> None:
        """What one advance did. What it closed is told by the store, which decides whether it may be closed."""
        for node, at_ms, failure in effects.retries:
            self.add("retry", node=node, at_ms=at_ms, message=failure.message[:1000])
        for node in effects.limits:
            self.add("limit", node=node)
            self._telemetry.emit(told.ROUNDS_LIMITED, run_id=self._run_id, path=node)
        for call in effects.calls.values():
            self._starts(run, call)
        for opened in effects.opened.values():
            kind = kind_of_wait(opened.spec.kind, opened.deadline_ms, has_task=opened.spec.task is not None)
            self.add("wait", node=opened.address, wait_id=opened.id, kind=kind, deadline_ms=opened.deadline_ms)
            if self._told is not None:
                self._told.suspended(run.waits[opened.id])

    def _starts(self, run: Run, call: Call) -> None:
        node = self.name_of(call)
        fields: dict[str, Json] = {"type": call.node.type, "attempt": call.attempt, "key": call.key}
        given = arguments_of(call)
        if given is not None:
            if self._secrets is None:
                self._secrets = secrets_of(run)
            fields["input"] = self._preview(node, redact(given, self._secrets))
        self.add("node_start", node=node, **fields)

    def _preview(self, node: str, value: Json) -> Json:
        """A value as people see it in the history: itself while it is small."""
        data = encode(value)
        if len(data) <= PREVIEW_BYTES_MAX:
            return value
        self._telemetry.emit(told.HISTORY_CLIPPED, run_id=self._run_id, path=node, size=len(data))
        return data[:PREVIEW_BYTES_MAX].decode(errors="ignore") + "…"

    def took(self, call: Call, seconds: float, *, failed: bool) -> None:
        """How long a call was under way."""
        self._telemetry.emit(
            told.CALL_RETURNED,
            run_id=self._run_id,
            path=self.name_of(call),
            type=call.node.type,
            failed=failed,
            seconds=round(seconds, 6),
        )

    def left_behind(self, call: Call) -> None:
        """The thread of a call does not end and is replaced."""
        node, where = call.node.id, call.frame.where(call.node.id)
        self._telemetry.emit(told.THREAD_ABANDONED, run_id=self._run_id, node_id=node, path=where)

    def take(self) -> tuple[bytes, ...]:
        """The entries for the next settle."""
        self._name_passed()
        entries, self._entries = self._entries, []
        self._taken, self._returned = self._returned, []
        return tuple(encode(entry) for entry in entries)

    def parks(self, run: Run) -> None:
        """The run is about to be given back."""
        if self._told is not None and run.waits:
            self._told.flow_suspended(run.root)

    def stored(self) -> None:
        """The settle was accepted: callbacks hear of what it carried."""
        if self._told is not None:
            self._told.flush()

    def refused(self) -> None:
        """The settle was not accepted: the machine starts over from the last one, but the calls have come back."""
        if self._told is not None:
            self._told.drop()
        self._entries, self._returned = [*self._taken, *self._entries], [*self._taken, *self._returned]

    def _name_passed(self) -> None:
        if self._passed:
            self._entries.append({"event": "nodes", "count": self._passed, "nodes": self._trail})
            self._trail, self._passed = [], 0


def secrets_of(run: Run) -> frozenset[str]:
    """Values of the variables that any part of the flow may read."""
    names = {name for graph in run.program.graphs.values() for name in graph.env_names}
    return frozenset(run.env[name] for name in names if name in run.env)
