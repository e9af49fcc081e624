"""Performing one effectful node: the view it gets, the check of what it gives back."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import threading
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from plaita.base.errors import InputError, PlaitaError
from plaita.base.json import Json, admit
from plaita.core.errors import FlowResultError, NodeException
from plaita.engine.effects import Call, Raised, Returned
from plaita.engine.expression import EvaluationError, Names, compile_value, get_default_expression_registry
from plaita.engine.expression.documented import CONTEXT_ROOTS
from plaita.engine.expression.paths import ROOTS
from plaita.engine.expression.scope import FixedFacts
from plaita.engine.failing import fingerprint, outcome_of
from plaita.engine.failure import NODE_CODE, Failure, FailureRaised
from plaita.engine.machine import Run
from plaita.engine.program import Graph
from plaita.engine.values import copied
from plaita.node.network.failures import CANNOT_BUILD

_COMPILED_MAX = 512
"""Values of one graph that are kept compiled."""
_NAME = re.compile(r"[\w-]+")
_SHOWN_ROOTS = tuple(name for name in CONTEXT_ROOTS if name != "ENV")
"""Roots that a node may ask for by name: not the environment."""
_ONE_BY_ONE = threading.Lock()
TEXT_MAX = 20_000
"""Characters of an error's text that are kept."""


class CallScope:
    """The scope of a call under the time it was issued at: a repetition of the call evaluates to the same."""

    __slots__ = ("branch", "env", "extra", "flow_id", "globals", "graph", "input", "last_id", "nodes", "parent", "run")

    def __init__(self, call: Call) -> None:
        frame = call.frame
        self.graph, self.input, self.nodes, self.parent = frame.graph, frame.input, frame.nodes, frame.parent
        self.globals, self.env, self.extra = frame.globals, frame.env, frame.extra
        self.flow_id, self.last_id, self.branch = frame.flow_id, frame.last_id, frame.branch
        self.run = FixedFacts(frame.run.execution_id, call.issued_ms, frame.run.timezone)


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
        self._scratch: dict[str, Json] = {}
        self._over = False
        self.attempt = call.attempt
        self.idempotency_key = f"{incarnation}/{call.key.removeprefix('/')}"
        self._cancel_event: threading.Event | None = None

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
        return self._over

    @property
    def cancel_event(self) -> threading.Event:
        """The same to wait for, from any thread."""
        with _ONE_BY_ONE:
            event = self._cancel_event = self._cancel_event or threading.Event()
        # Looked at after the event is there: whoever closes the view meanwhile sets it, or is seen here.
        if self._over:
            event.set()
        return event

    def evaluate(self, value: Json) -> Json:
        """Evaluate a field: expressions and templates in it, at any depth. Raises ``EvaluationError``."""
        if self._over:
            raise RuntimeError(f"the call of node {self.node_id!r} is over")
        return evaluate_in(self._scope, value)

    def arguments(self) -> Json:
        """The fields that the node compiled when it was loaded, evaluated. Shared values: not to be changed."""
        arguments = self._call.node.arguments
        return None if arguments is None else arguments(self._scope)

    def evaluate_after(self, value: Json, result: Json) -> Json:
        """Evaluate a value as if the node had that result already: ``$NODE.<its id>`` is ``result``."""
        scope = CallScope(self._call)
        scope.nodes = {**scope.nodes, self.node_id: result}
        return evaluate_in(scope, value)

    def get_state(self, key: str, default: Json = None) -> Json:
        """A root by name, with or without ``$``; what this call has set wins."""
        name = key.removeprefix("$")
        for own in (self._scratch, self._set):
            if name in own:
                return own[name]
        if name in _SHOWN_ROOTS:
            return self.evaluate(f"${name}")
        return copied((self._frame.extra or {}).get(name, default))

    def set_state(self, key: str, value: Json) -> None:
        """Set a root; it becomes visible as ``$name`` in this flow when the node's result is stored.

        Raises ``ValueError`` for a name that no expression can say, and for the roots that the flow itself sets.
        """
        name = key.removeprefix("$")
        if name in ROOTS or name.startswith("__") or not _NAME.fullmatch(name):
            raise ValueError(f"set_state({key!r}): a node cannot set this root")
        self._set |= admit({name: value}, "$")

    def get_global_variable(self, key: str, default: Json = None) -> Json:
        """A value of ``$GLOBAL``."""
        found = self.evaluate(f"$GLOBAL[{json.dumps(key, ensure_ascii=False)}]")
        return default if found is None else found

    @property
    def context(self) -> dict[str, Json]:
        """The documented roots as they are at the call; a copy."""
        own = {**(self._frame.extra or {}), **self._set}
        return {f"${name}": self.get_state(name) for name in (*_SHOWN_ROOTS, *own)}

    def set_scratch(self, key: str, value: Json) -> None:
        """Set a root that only this call sees, through ``get_state`` and ``context``."""
        self._scratch |= admit({key.removeprefix("$"): value}, "$")

    def get_child_execution(self) -> Any:
        """A ``FlowExecution`` for flows that the node runs itself: in this process, whole, and without waits."""
        from plaita.core.executor import FlowExecution

        manager = getattr(self._frame.run.conditions.trace, "manager", None)
        return FlowExecution(callback_manager=manager)

    def run_compatible(self, flow: Any, lazy: bool = False, *args: Any, **kwargs: Any) -> Any:
        """Run a flow in this process; see ``get_child_execution``."""
        return self.get_child_execution().run_compatible(flow, lazy, *args, **kwargs)

    async def arun_compatible(self, flow: Any, lazy: bool = False, *args: Any, **kwargs: Any) -> Any:
        """``run_compatible`` for ``arun``."""
        return await self.get_child_execution().arun_compatible(flow, lazy, *args, **kwargs)

    def close(self) -> None:
        """The call is over: the view answers no more."""
        self._over = True
        if self._cancel_event is not None:
            self._cancel_event.set()

    def returned(self, value: object) -> Returned:
        """The event of a result. Raises ``InputError`` when it is not JSON."""
        return Returned(self._call.id, admit(value, "$"), self._set)


def arguments_of(call: Call) -> Json:
    """The evaluated fields of a custom node; ``None`` without any, or when they cannot be evaluated."""
    arguments = call.node.arguments
    if arguments is None:
        return None
    value = outcome_of(call.node, lambda: arguments(CallScope(call)))
    return None if isinstance(value, Failure) else call.node.model.shown(value)


def is_another_request(call: Call) -> bool:
    """Would repeating the call now ask for something else than the first time, for example after ``$ENV`` changed?"""
    return bool(call.fingerprint) and fingerprint(call.node, CallScope(call)) != call.fingerprint


def accept_request(run: Run, call: Call) -> None:
    """Repeat the call as it would be now: the first request is forgotten."""
    frame = call.frame
    frame.stamp = (call.issued_ms, call.dice, "")
    run.touched[frame] = None


def evaluate_in(frame: CallScope, value: Json) -> Json:
    """Evaluate a value in a scope; a copy."""
    if not isinstance(value, str | list | dict):
        return value
    graph: Graph = frame.graph
    key = repr(value)
    run = graph.evaluated.get(key)
    if run is None:
        result = compile_value(value, _names_in(graph), get_default_expression_registry().table())
        errors = [f for f in result.findings if f.severity == "error"]
        if errors:
            raise EvaluationError(str(value), errors[0].message)
        if len(graph.evaluated) >= _COMPILED_MAX:
            graph.evaluated.clear()
        run = graph.evaluated[key] = result.run
    return copied(run(frame))


def _names_in(graph: Graph) -> Names:
    declared: list[frozenset[str]] = []
    at: Graph | None = graph
    while at is not None:
        declared.append(frozenset(at.nodes))
        at = at.parent
    return Names(tuple(declared), open_roots=True)


def is_async(call: Call) -> bool:
    """Does the node perform itself as a coroutine?"""
    return hasattr(call.node.model, "arun")


def perform(call: Call, view: NodeExecution) -> Returned | Raised:
    """Run a synchronous node in this thread. Whatever it raises is its failure, but Ctrl-C in the main thread."""
    process, code = os.getpid(), 0
    try:
        return view.returned(accepted(call, call.node.model.execute(view)))
    except BaseException as e:
        code = _exit_code(e)
        if isinstance(e, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise
        return Raised(call.id, failure_of(e, call))
    finally:
        view.close()
        if os.getpid() != process:
            # The node forked, and this is the child: it has no claim on the run.
            os._exit(code)


async def aperform(call: Call, view: NodeExecution) -> Returned | Raised:
    """Await an asynchronous node in this loop."""
    try:
        result = call.node.model.arun(view)
        return view.returned(accepted(call, await result if inspect.isawaitable(result) else result))
    except (asyncio.CancelledError, GeneratorExit) as e:
        # Who drops a call closes its view first: any other cancellation is the node's own.
        if view.cancel_requested:
            raise
        return Raised(call.id, failure_of(e, call))
    except KeyboardInterrupt:
        raise
    except BaseException as e:  # noqa: BLE001 - see perform
        return Raised(call.id, failure_of(e, call))
    finally:
        view.close()


def accepted(call: Call, result: Any) -> Any:
    """What is stored of a result that the node's ``_validate_output`` accepts, with its ``node_result_payload``.

    A refused result fails the node, and a retry may help: whatever it raises says nothing about the arguments.
    """
    node = call.node.model
    try:
        node._validate_output(result)
    except Exception as e:
        text = f"the result is refused: {_stored(e) or type(e).__name__}"
        raise FailureRaised(Failure("node_error", NODE_CODE, text, retryable=True, origin=e)) from e
    payload = node.node_result_payload()
    return {**payload, "data": result} if payload else result


def _exit_code(error: BaseException) -> int:
    """The exit code of a process that ends with an exception."""
    code = error.code if isinstance(error, SystemExit) else 1
    return code if isinstance(code, int) else int(code is not None)


def failure_of(error: BaseException, call: Call) -> Failure:
    """What an exception of a node means. Validation, type and expression errors are permanent, the rest may pass."""
    known = error.failure.origin if isinstance(error, FailureRaised) else None
    return replace(_failure_of(error, call), origin=known or error)


def _failure_of(error: BaseException, call: Call) -> Failure:
    node = call.node
    if isinstance(error, FailureRaised):
        return replace(error.failure, message=f"node {node.id!r} ({node.type}): {_stored(error.failure.message)}")
    if isinstance(error, FlowResultError):
        return Failure("error_result", _code(error.code), _stored(error.message), "error_result")
    if isinstance(error, NodeException):
        text = f"node {node.id!r} ({node.type}): {_stored(error.message)}"
        return Failure("node_error", _code(error.code), text, retryable=error.code != CANNOT_BUILD)
    if isinstance(error, PlaitaError) and not isinstance(error, EvaluationError | InputError):
        return Failure(error.kind, NODE_CODE, f"node {node.id!r} ({node.type}): {_stored(error)}")
    permanent = isinstance(error, ValueError | TypeError | ValidationError | NotImplementedError)
    permanent = permanent or not isinstance(error, Exception | asyncio.CancelledError)
    if isinstance(error, InputError):
        text = f"the result is not JSON: {_stored(error)}"
    else:
        text = _stored(error) if isinstance(error, EvaluationError) else f"{type(error).__name__}: {_stored(error)}"
    return Failure("node_error", NODE_CODE, f"node {node.id!r} ({node.type}): {text}", retryable=not permanent)


def _stored(error: object) -> str:
    """The text of an error as state can hold it: Unicode, and of bounded length."""
    try:
        text = str(error)
    except Exception as e:  # noqa: BLE001 - foreign code
        return f"(its text cannot be read: {type(e).__name__})"
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}… ({len(text)} characters)"


def _code(code: object) -> int | str:
    """A code as state can hold it."""
    is_number = isinstance(code, int) and not isinstance(code, bool) and abs(code) < 10**18
    return int(code) if is_number else _stored(code)  # type: ignore[call-overload]
