"""Flows that survive.

from plaita import Flow, Runtime

Flow.from_file("order.yaml").run(amount=120)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plaita.node.subflow import install_reader

if TYPE_CHECKING:
    from plaita.core.flow import Flow, parse, parse_and_run
    from plaita.node.basic import Node
    from plaita.node.registry import NodeRegistry, get_default_registry
    from plaita.runtime import Runtime

install_reader(lambda value: import_module("plaita.core.loading").read_sub_flow(value))

__version__ = "1.0.0.dev0"

_HOMES = {
    "Flow": "plaita.core.flow",
    "parse": "plaita.core.flow",
    "parse_and_run": "plaita.core.flow",
    "Node": "plaita.node.basic",
    "NodeRegistry": "plaita.node.registry",
    "get_default_registry": "plaita.node.registry",
    "Runtime": "plaita.runtime",
    "FlowExecution": "plaita.core.executor",
    "ExecutionMode": "plaita.core.executor",
    "FlowCallback": "plaita.core.callback",
    "CallbackManager": "plaita.core.callback",
    "BaseCallbackManager": "plaita.core.callback",
    "LoggerCallback": "plaita.core.callback",
    "FlowEvent": "plaita.core.callback",
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
}

__all__ = ["Flow", "Node", "NodeRegistry", "Runtime", "get_default_registry", "parse", "parse_and_run"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'plaita' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
