"""Callbacks: being told of what a flow does, node by node."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Any

LOGGER = logging.getLogger("plaita.core.callback")


class FlowEvent(StrEnum):
    """Names of the four events that every flow has."""

    FLOW_START = "flow_start"
    FLOW_END = "flow_end"
    NODE_START = "node_start"
    NODE_END = "node_end"


class FlowCallback:
    """Subclass it and override what is of interest. ``flow`` and ``node`` are the definitions.

    In one process a hook is called where the thing happens; a worker calls it after the step is stored, at least once.
    The flow of a ``child``, of a round, an item or a branch is told like any other, between the start and the end of
    its node. ``error`` is ``{"code", "message"}``. A hook that raises is logged and changes nothing. Keywords added in
    later releases are passed only to hooks that take them: write ``**kwargs``.
    """

    def on_flow_start(self, flow: Any, **kwargs: Any) -> None:
        """A flow begins."""

    def on_flow_end(
        self, flow: Any, result: Any = None, error: Any = None, exception: BaseException | None = None, **kwargs: Any
    ) -> None:
        """A flow ended: with its output, or with an error. Once, in every mode."""

    def on_flow_suspend(self, flow: Any, **kwargs: Any) -> None:
        """A flow waits for somebody."""

    def on_flow_resume(self, flow: Any, **kwargs: Any) -> None:
        """A flow goes on after a wait."""

    def on_node_start(self, flow: Any, node: Any, **kwargs: Any) -> None:
        """A node is entered; ``attempt`` counts from 1."""

    def on_node_end(
        self,
        flow: Any,
        node: Any,
        result: Any = None,
        error: Any = None,
        exception: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        """A node has its result, or failed for good. An error that its handler took care of is none."""

    def on_node_retry(
        self, flow: Any, node: Any, error: Any = None, exception: BaseException | None = None, **kwargs: Any
    ) -> None:
        """A node failed and is tried again; ``attempt`` is the one that failed."""

    def on_node_suspend(self, flow: Any, node: Any, **kwargs: Any) -> None:
        """A node waits."""

    def on_node_resume(self, flow: Any, node: Any, **kwargs: Any) -> None:
        """The wait of a node is over."""


HOOKS = tuple(name for name in vars(FlowCallback) if name.startswith("on_"))


class BaseCallbackManager(FlowCallback):
    """What an execution tells: a callback that may stand for many."""


class CallbackManager(BaseCallbackManager):
    """Hands every hook to its handlers, in order. With ``inherit_handlers`` those of ``parent`` come first."""

    def __init__(
        self,
        handlers: Iterable[FlowCallback] | None = None,
        parent: CallbackManager | None = None,
        inherit_handlers: bool = False,
    ) -> None:
        self.parent = parent
        inherited = list(parent.handlers) if parent is not None and inherit_handlers else []
        self.handlers: list[FlowCallback] = []
        for handler in (*inherited, *(handlers or ())):
            self.add_handler(handler)

    def add_handler(self, handler: FlowCallback) -> None:
        """Tell this one too, once."""
        if not any(handler is known for known in self.handlers):
            self.handlers.append(handler)

    def remove_handler(self, handler: FlowCallback) -> None:
        """Tell it no more; an unknown one is ignored."""
        self.handlers = [known for known in self.handlers if known is not handler]

    def child(self) -> CallbackManager:
        """A manager with the same handlers, to which more can be added."""
        return CallbackManager([], parent=self, inherit_handlers=True)


def _handing_on(name: str) -> Callable[..., None]:
    def hook(self: CallbackManager, *args: Any, **kwargs: Any) -> None:
        for handler in list(self.handlers):
            call_hook(handler, name, *args, **kwargs)

    hook.__name__, hook.__doc__ = name, f"Hand ``{name}`` to every handler."
    return hook


for _name in HOOKS:
    setattr(CallbackManager, _name, _handing_on(_name))


def call_hook(handler: FlowCallback, name: str, *args: Any, **kwargs: Any) -> None:
    """Call one hook. What it raises is logged; keywords it does not know are left out."""
    hook = getattr(handler, name, None)
    if hook is None:
        return
    try:
        hook(*args, **_known(hook, kwargs))
    except Exception as e:  # noqa: BLE001 - an observer must not change what it observes
        LOGGER.warning("callback %s.%s raised %s: %s", type(handler).__name__, name, type(e).__name__, e)


def _known(hook: Callable[..., None], given: dict[str, Any]) -> dict[str, Any]:
    if not given:
        return given
    names = _keywords(getattr(hook, "__func__", hook))
    return given if names is None else {name: value for name, value in given.items() if name in names}


@lru_cache(maxsize=256)
def _keywords(hook: Callable[..., None]) -> frozenset[str] | None:
    """Names of the parameters of a hook, ``None`` when it takes any."""
    parameters = inspect.signature(hook).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters)


class LoggerCallback(FlowCallback):
    """Writes one line a hook to the logger ``plaita.core.callback``."""

    def on_flow_start(self, flow: Any, **kwargs: Any) -> None:
        LOGGER.info("flow %s begins", flow.flow_id or "")

    def on_flow_end(
        self, flow: Any, result: Any = None, error: Any = None, exception: BaseException | None = None, **kwargs: Any
    ) -> None:
        LOGGER.info("flow %s %s", flow.flow_id or "", _outcome(error))

    def on_flow_suspend(self, flow: Any, **kwargs: Any) -> None:
        LOGGER.info("flow %s waits", flow.flow_id or "")

    def on_flow_resume(self, flow: Any, **kwargs: Any) -> None:
        LOGGER.info("flow %s goes on", flow.flow_id or "")

    def on_node_start(self, flow: Any, node: Any, **kwargs: Any) -> None:
        LOGGER.info("node %s (%s) begins", node.id, node.node_type)

    def on_node_end(
        self,
        flow: Any,
        node: Any,
        result: Any = None,
        error: Any = None,
        exception: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        LOGGER.info("node %s (%s) %s", node.id, node.node_type, _outcome(error))

    def on_node_retry(
        self, flow: Any, node: Any, error: Any = None, exception: BaseException | None = None, **kwargs: Any
    ) -> None:
        LOGGER.info("node %s (%s) is tried again after: %s", node.id, node.node_type, (error or {}).get("message"))

    def on_node_suspend(self, flow: Any, node: Any, **kwargs: Any) -> None:
        LOGGER.info("node %s (%s) waits", node.id, node.node_type)

    def on_node_resume(self, flow: Any, node: Any, **kwargs: Any) -> None:
        LOGGER.info("node %s (%s) goes on", node.id, node.node_type)


def _outcome(error: Any) -> str:
    return "ended" if error is None else f"failed: {error.get('message')}"
