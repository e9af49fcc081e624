"""From what the machine tells to callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from plaita.core.callback import BaseCallbackManager, call_hook
from plaita.core.errors import exception_of
from plaita.engine.failure import CANCEL_CODE, Failure
from plaita.engine.frames import Frame
from plaita.engine.program import CNode
from plaita.engine.tracing import Told
from plaita.engine.values import copied

Tell = Callable[[], None]


class CallbackTrace:
    """A trace that calls hooks. ``deferred``: they are kept until ``flush``, and ``drop`` forgets them.

    Every start that was told is followed by an end: what is cut by the end of something around it is told to have
    failed with it.
    """

    def __init__(self, manager: BaseCallbackManager, *, deferred: bool = False) -> None:
        self.manager, self._deferred = manager, deferred
        self._kept: list[Tell] = []
        self._open: dict[Frame, CNode | None] = {}
        self._inside: dict[Frame, dict[Frame, None]] = {}

    def __call__(self, kind: Told, frame: Frame, cn: CNode | None, value: Any) -> None:
        if kind in ("end", "answered", "fail", "finish", "abort", "retry"):
            self._close(kind, frame, cn, value)
        elif kind == "begin":
            self._open[frame] = None
            if frame.host is not None:
                self._inside.setdefault(frame.host, {})[frame] = None
        elif kind == "start" and frame in self._open:
            self._open[frame] = cn
        match kind:
            case "begin":
                self._tell("on_flow_start", frame.graph.model)
            case "finish":
                self._tell("on_flow_end", frame.graph.model, copied(value), None, None)
            case "abort":
                self._tell("on_flow_end", frame.graph.model, None, *_error(value))
            case "start" if frame.attempt == 0:
                self._node("on_node_start", frame, cn, attempt=1)
            case "end" | "answered":
                self._node("on_node_end", frame, cn, copied(value), None, None, attempt=frame.attempt + 1)
            case "fail":
                self._node("on_node_end", frame, cn, None, *_error(value), attempt=frame.attempt + 1)
            case "retry":
                self._node("on_node_retry", frame, cn, *_error(value), attempt=frame.attempt + 1)
            case "resume":
                if frame.host is None:
                    self._tell("on_flow_resume", frame.graph.model)
                self._node("on_node_resume", frame, cn)

    def _close(self, kind: Told, frame: Frame, cn: CNode | None, value: Any) -> None:
        """Something ends: whatever was told to have started inside it ends first."""
        failure = value if isinstance(value, Failure) else _cut_short(cn)
        for inner in self._cut(frame):
            node = self._open.pop(inner)
            if node is not None:
                self._node("on_node_end", inner, node, None, *_error(failure), attempt=inner.attempt + 1)
            self._tell("on_flow_end", inner.graph.model, None, *_error(failure))
        if kind in ("finish", "abort"):
            node = self._open.pop(frame, None)
            if frame.host is not None:
                self._inside.get(frame.host, {}).pop(frame, None)
            if node is not None and kind == "abort":
                self._node("on_node_end", frame, node, None, *_error(failure), attempt=frame.attempt + 1)
        elif kind != "retry" and frame in self._open:
            self._open[frame] = None

    def _cut(self, frame: Frame) -> Iterator[Frame]:
        """What is still open inside of a frame, the innermost first; it is no longer looked for there."""
        for inner in reversed(self._inside.pop(frame, {})):
            yield from self._cut(inner)
            yield inner

    def suspended(self, frame: Frame) -> None:
        """The flow rests at an open wait."""
        self._node("on_node_suspend", frame, frame.pc)

    def flow_suspended(self, root: Frame) -> None:
        """Everything in the flow waits."""
        self._tell("on_flow_suspend", root.graph.model)

    def flush(self) -> None:
        """Tell what was kept: it is durable now."""
        kept, self._kept = self._kept, []
        for tell in kept:
            tell()

    def drop(self) -> None:
        """Forget what was kept: it did not happen."""
        self._kept.clear()

    def _node(self, hook: str, frame: Frame, cn: CNode | None, *args: Any, **kwargs: Any) -> None:
        if cn is not None:
            self._tell(hook, frame.graph.model, cn.model, *args, **kwargs)

    def _tell(self, hook: str, *args: Any, **kwargs: Any) -> None:
        tell = partial(call_hook, self.manager, hook, *args, **kwargs)
        if self._deferred:
            self._kept.append(tell)
        else:
            tell()


def _cut_short(cn: CNode | None) -> Failure:
    around = "its flow" if cn is None else f"node {cn.id!r}"
    return Failure("cancelled", CANCEL_CODE, f"cut short: {around} went on without it", "flow_error")


def _error(failure: Failure) -> tuple[dict[str, Any], BaseException]:
    return {"code": failure.code, "message": failure.message}, exception_of(failure)
