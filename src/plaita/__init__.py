"""Flows that survive.

from plaita import Flow, Runtime

Flow.from_file("order.yaml").run(amount=120)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plaita.base.version import VERSION
from plaita.core.buses import install_bus_factory
from plaita.node.subflow import install_reader

if TYPE_CHECKING:
    from plaita import types
    from plaita.base.errors import FlowLoadError, InputError, PlaitaError, WaitNotPossible
    from plaita.core.callback import BaseCallbackManager, CallbackManager, FlowCallback, FlowEvent, LoggerCallback
    from plaita.core.errors import (
        ErrorHandler,
        ErrorResultException,
        ErrorStrategy,
        ExecutionDeadlineError,
        FlowErrorException,
        FlowErrorType,
        FlowExecutionException,
        FlowResultError,
        FlowStartMissingError,
        FlowTimeoutError,
        NodeException,
        NodeExecutionError,
        NodeNotFoundError,
        NodeTimeoutError,
        RecoverableErrorHandler,
        ResumeError,
        ResumeGuardError,
        ResumeType,
        StateSnapshotError,
    )
    from plaita.core.executor import ExecutionMode, FlowExecution
    from plaita.core.flow import Flow, parse, parse_and_run
    from plaita.node.basic import Node
    from plaita.node.code import CodeNode
    from plaita.node.http import HTTP
    from plaita.node.process_registry import node_register, nodes, parse_node
    from plaita.node.registry import NodeRegistry, get_default_registry
    from plaita.runtime import Runtime

install_reader(lambda value: import_module("plaita.core.loading").read_sub_flow(value))
install_bus_factory(lambda: import_module("plaita.event").get_default_event_bus())

__version__ = VERSION

_HOMES = {
    "Flow": "plaita.core.flow",
    "parse": "plaita.core.flow",
    "parse_and_run": "plaita.core.flow",
    "FlowExecution": "plaita.core.executor",
    "ExecutionMode": "plaita.core.executor",
    "FlowCallback": "plaita.core.callback",
    "CallbackManager": "plaita.core.callback",
    "BaseCallbackManager": "plaita.core.callback",
    "LoggerCallback": "plaita.core.callback",
    "FlowEvent": "plaita.core.callback",
    "Node": "plaita.node.basic",
    "NodeRegistry": "plaita.node.registry",
    "get_default_registry": "plaita.node.registry",
    "node_register": "plaita.node.process_registry",
    "nodes": "plaita.node.process_registry",
    "parse_node": "plaita.node.process_registry",
    "CodeNode": "plaita.node.code",
    "HTTP": "plaita.node.http",
    "ResumeType": "plaita.core.errors",
    "ResumeError": "plaita.core.errors",
    "ResumeGuardError": "plaita.core.errors",
    "StateSnapshotError": "plaita.core.errors",
    "ErrorStrategy": "plaita.core.errors",
    "ErrorHandler": "plaita.core.errors",
    "RecoverableErrorHandler": "plaita.core.errors",
    "FlowErrorType": "plaita.core.errors",
    "NodeException": "plaita.core.errors",
    "FlowResultError": "plaita.core.errors",
    "FlowExecutionException": "plaita.core.errors",
    "NodeNotFoundError": "plaita.core.errors",
    "FlowStartMissingError": "plaita.core.errors",
    "NodeExecutionError": "plaita.core.errors",
    "NodeTimeoutError": "plaita.core.errors",
    "FlowTimeoutError": "plaita.core.errors",
    "ExecutionDeadlineError": "plaita.core.errors",
    "FlowErrorException": "plaita.core.errors",
    "ErrorResultException": "plaita.core.errors",
    "PlaitaError": "plaita.base.errors",
    "FlowLoadError": "plaita.base.errors",
    "InputError": "plaita.base.errors",
    "WaitNotPossible": "plaita.base.errors",
    "Runtime": "plaita.runtime",
    "RedisExecutionStorage": "plaita.storage.redis",
    "RedisFlowStorage": "plaita.storage.redis",
    "FlowWorker": "plaita.server.documented.flow_worker",
    "RedisEventBus": "plaita.event.redis",
}
_LATER = {
    "LangfuseCallback": "TRACING",
    "PlaitaClient": "CONSOLE",
}

__all__ = [
    "Flow",
    "parse",
    "parse_and_run",
    "FlowExecution",
    "ExecutionMode",
    "FlowCallback",
    "CallbackManager",
    "BaseCallbackManager",
    "LoggerCallback",
    "FlowEvent",
    "Node",
    "NodeRegistry",
    "get_default_registry",
    "node_register",
    "nodes",
    "parse_node",
    "ResumeType",
    "ResumeError",
    "ResumeGuardError",
    "StateSnapshotError",
    "ErrorStrategy",
    "ErrorHandler",
    "RecoverableErrorHandler",
    "FlowErrorType",
    "NodeException",
    "FlowResultError",
    "FlowExecutionException",
    "NodeNotFoundError",
    "FlowStartMissingError",
    "NodeExecutionError",
    "NodeTimeoutError",
    "FlowTimeoutError",
    "ExecutionDeadlineError",
    "FlowErrorException",
    "ErrorResultException",
    "PlaitaError",
    "FlowLoadError",
    "InputError",
    "WaitNotPossible",
    "Runtime",
    "types",
    "__version__",
    "CodeNode",
    "HTTP",
]


def __getattr__(name: str) -> Any:
    if name == "types":
        return import_module("plaita.types")
    home = _HOMES.get(name)
    if home is None:
        return _refused(name)
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def _refused(name: str) -> Any:
    """Nobody knows the name, or a later release does."""
    from plaita.base import absent

    if name in _LATER:
        absent.refuse("plaita", name, {name: getattr(absent, _LATER[name])})
    raise AttributeError(f"module 'plaita' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "types"})
