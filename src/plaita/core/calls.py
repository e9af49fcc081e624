"""Performing one effectful node: the view it gets, the check of what it gives back."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from plaita.base.errors import InputError, PlaitaError
from plaita.base.json import Json, admit
from plaita.core.errors import FlowResultError, NodeException
from plaita.engine.effects import Call, Raised, Returned
from plaita.engine.expression import EvaluationError, Names, compile_value, get_default_expression_registry
from plaita.engine.failure import NODE_CODE, Failure
from plaita.engine.values import copied

_compiled: dict[tuple[int, str], Any] = {}
_COMPILED_MAX = 4096


@dataclass(frozen=True, slots=True)
class _CallFacts:
    execution_id: str
    now_ms: int
    timezone: str | None


class CallScope:
    """The scope of a call under the time it was issued at: a repetition of the call evaluates to the same."""

    __slots__ = ("branch", "env", "extra", "flow_id", "globals", "graph", "input", "last_id", "nodes", "parent", "run")

    def __init__(self, call: Call) -> None:
        frame = call.frame
        self.graph, self.input, self.nodes, self.parent = frame.graph, frame.input, frame.nodes, frame.parent
        self.globals, self.env, self.extra = frame.globals, frame.env, frame.extra
        self.flow_id, self.last_id, self.branch = frame.flow_id, frame.last_id, frame.branch
        self.run = _CallFacts(frame.run.execution_id, call.issued_ms, frame.run.timezone)


class NodeExecution:
    """What ``execute`` and ``arun`` see: the scope of the node, read-only, as it is at the call.

    ``idempotency_key`` is the same for every repetition of this call; ``attempt`` counts from 1. Values handed out are
    copies.
    """

    express_prefix = "$"

    def __init__(self, call: Call, incarnation: str) -> None:
        self._call, self._frame = call, call.frame
        self._scope = CallScope(call)
        self._set: dict[str, Json] = {}
        self._over = False
        self.attempt = call.attempt
        self.idempotency_key = f"{incarnation}/{call.key.removeprefix('/')}"
        self.cancel_event = threading.Event()

    @property
    def execution_id(self) -> str:
        """Id of the execution."""
        return self._frame.run.execution_id

    @property
    def node_id(self) -> str:
        """Id of the node."""
        return self._call.node.id

    @property
    def now_ms(self) -> int:
        """The time the call was issued under, the same for every repetition."""
        return self._call.issued_ms

    @property
    def cancel_requested(self) -> bool:
        """True once nobody waits for the result any more."""
        return self.cancel_event.is_set()

    def evaluate(self, value: Json) -> Json:
        """Evaluate a field: expressions and templates in it, at any depth. Raises ``EvaluationError``."""
        if self._over:
            raise RuntimeError(f"the call of node {self.node_id!r} is over")
        return evaluate_in(self._scope, value)

    def get_state(self, key: str, default: Json = None) -> Json:
        """A root by name, with or without ``$``; what this call has set wins."""
        name = key.removeprefix("$")
        if name in self._set:
            return self._set[name]
        if name in ("INPUT", "NODE", "GLOBAL", "PARENT", "FLOW_ID", "EXECUTION_ID", "LAST_NODE", "BRANCH"):
            return self.evaluate(f"${name}")
        return copied((self._frame.extra or {}).get(name, default))

    def set_state(self, key: str, value: Json) -> None:
        """Set a root; it becomes visible as ``$name`` in this flow when the node's result is stored."""
        self._set[key.removeprefix("$")] = admit(value, f"${key.removeprefix('$')}")

    def get_global_variable(self, key: str, default: Json = None) -> Json:
        """A value of ``$GLOBAL``."""
        found = self.evaluate(f'$GLOBAL["{key}"]')
        return default if found is None else found

    def close(self) -> None:
        """The call is over: the view answers no more."""
        self._over = True
        self.cancel_event.set()

    def returned(self, value: object) -> Returned:
        """The event of a result. Raises ``InputError`` when it is not JSON."""
        return Returned(self._call.id, admit(value, "$"), self._set)


def evaluate_in(frame: CallScope, value: Json) -> Json:
    """Evaluate a value in a scope; a copy."""
    if not isinstance(value, str | list | dict):
        return value
    declared: list[frozenset[str]] = []
    graph: Any = frame.graph
    while graph is not None:
        declared.append(frozenset(graph.nodes))
        graph = graph.parent
    names = Names(tuple(declared), open_roots=True)
    key = (id(frame.graph), repr(value))
    compiled = _compiled.get(key)
    if compiled is None or compiled[0] is not frame.graph:
        result = compile_value(value, names, get_default_expression_registry().table())
        errors = [f for f in result.findings if f.severity == "error"]
        if errors:
            raise EvaluationError(str(value), errors[0].message)
        if len(_compiled) >= _COMPILED_MAX:
            _compiled.clear()
        compiled = _compiled[key] = (frame.graph, result.run)
    return copied(compiled[1](frame))


def is_async(call: Call) -> bool:
    """Does the node perform itself as a coroutine?"""
    return hasattr(call.node.model, "arun")


def perform(call: Call, view: NodeExecution) -> Returned | Raised:
    """Run a synchronous node in this thread."""
    try:
        return view.returned(call.node.model.execute(view))
    except (Exception, SystemExit) as e:  # noqa: BLE001 - foreign code: whatever it raises is its failure
        return Raised(call.id, failure_of(e, call))
    finally:
        view.close()


async def aperform(call: Call, view: NodeExecution) -> Returned | Raised:
    """Await an asynchronous node in this loop."""
    try:
        result = call.node.model.arun(view)
        return view.returned(await result if inspect.isawaitable(result) else result)
    except asyncio.CancelledError as e:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Raised(call.id, failure_of(e, call))
    except (Exception, SystemExit) as e:  # noqa: BLE001 - see perform
        return Raised(call.id, failure_of(e, call))
    finally:
        view.close()


def failure_of(error: BaseException, call: Call) -> Failure:
    """What an exception of a node means. Validation, type and expression errors are permanent, the rest may pass."""
    node = call.node
    if isinstance(error, FlowResultError):
        return Failure("error_result", error.code, error.message, "error_result")
    if isinstance(error, NodeException):
        text = f"node {node.id!r} ({node.type}): {error.message}"
        return Failure("node_error", error.code, text, retryable=True)
    if isinstance(error, PlaitaError) and not isinstance(error, EvaluationError | InputError):
        return Failure(error.kind, NODE_CODE, f"node {node.id!r} ({node.type}): {error}")
    permanent = isinstance(error, ValueError | TypeError | ValidationError | NotImplementedError | SystemExit)
    kind = "input_error" if isinstance(error, InputError) else "node_error"
    if isinstance(error, InputError):
        kind, text = "node_error", f"the result is not JSON: {error}"
    else:
        text = str(error) if isinstance(error, EvaluationError) else f"{type(error).__name__}: {error}"
    return Failure(kind, NODE_CODE, f"node {node.id!r} ({node.type}): {text}", retryable=not permanent)


Performer = Callable[[Call], Returned | Raised]
