"""From what the machine tells to callbacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from plaita.core.callback import BaseCallbackManager, call_hook
from plaita.core.errors import exception_of
from plaita.engine.failure import Failure
from plaita.engine.frames import Frame
from plaita.engine.program import CNode
from plaita.engine.tracing import Told
from plaita.engine.values import copied

Tell = Callable[[], None]


class CallbackTrace:
    """A trace that calls hooks. ``deferred``: they are kept until ``flush``, and ``drop`` forgets them."""

    def __init__(self, manager: BaseCallbackManager, *, deferred: bool = False) -> None:
        self.manager, self._deferred = manager, deferred
        self._kept: list[Tell] = []

    def __call__(self, kind: Told, frame: Frame, cn: CNode | None, value: Any) -> None:
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


def _error(failure: Failure) -> tuple[dict[str, Any], BaseException]:
    return {"code": failure.code, "message": failure.message}, exception_of(failure)
