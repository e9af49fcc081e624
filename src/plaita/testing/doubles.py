"""What stands in for the nodes of a flow under test: mocks, and a record of what each call was given."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote

from plaita.base.errors import InputError
from plaita.base.json import Json, admit
from plaita.base.spelling import suggest
from plaita.core.calls import NodeExecution
from plaita.core.drivers import private_loop
from plaita.engine import steps
from plaita.engine.expression import EvaluationError
from plaita.engine.program import CNode, Program
from plaita.node.basic import BASE_FIELDS
from plaita.ports.flows import FlowStore
from plaita.server.worker.definitions import Definitions
from plaita.testing.performed import Attempt, Performed
from plaita.testing.saying import NotAsExpected

_ROUNDS = re.compile(r":[^/]*")
_NOT_GIVEN = BASE_FIELDS | {"output"}
_SCRIPT = frozenset({"code", "language", "sandbox_backend"})
_PLAYED_BY_THE_MACHINE = ("start", "end")


@dataclass(frozen=True, slots=True)
class Always:
    """The same answer to every call, also where a bare value would mean something else (a list, a function)."""

    value: Json


@dataclass(frozen=True, slots=True)
class Later:
    """An answer that takes its time: ``seconds`` of virtual time, then whatever ``answer`` is as a mock."""

    seconds: float
    answer: Any = None


@dataclass(frozen=True, slots=True)
class Hangs:
    """A call that never comes back; only a timeout of the node or above it ends it."""


class Nodes:
    """The nodes of a program by their addresses without rounds, for names that a test gives them."""

    def __init__(self, program: Program) -> None:
        self._types = {_label(cn): cn.type for cn in _nodes(program)}
        self._ids = {cn.id for cn in _nodes(program)}

    @property
    def types(self) -> frozenset[str]:
        """The types of its nodes."""
        return frozenset(self._types.values())

    def problem(self, name: str) -> str:
        """Why a name is that of no node; empty when it is one."""
        if name in self._ids or _ROUNDS.sub("", name) in self._types:
            return ""
        near = suggest(name, {*self._types, *self._ids}) or f"nodes: {', '.join(self._types)}"
        return f"the flow has no node {name!r} ({near})"

    def not_performed(self, name: str) -> str:
        """Why a node can have no mock; empty when it can."""
        for label, node_type in self._types.items():
            is_it = name == label.rpartition("/")[2] or _ROUNDS.sub("", name) == label
            if is_it and node_type in _PLAYED_BY_THE_MACHINE:
                return f"node {label!r} ({node_type}) can have no mock: it is where a flow begins or ends"
        return ""


class Witness(Protocol):
    """What a world wants to know of its nodes."""

    def perform(self, call: Performed) -> None:
        """A node begins; raises when it must not."""

    def failed(self, error: AssertionError) -> BaseException:
        """The test has failed; what to raise so that the world stops at once."""

    def now_ms(self) -> int:
        """Virtual time."""


class Cast:
    """Who plays which node: mocks by id or address, and which nodes play themselves.

    An address with rounds (``loop:1/pay``) wins over one without (``loop/pay``), and that over an id.
    """

    def __init__(self, mocks: Mapping[str, Any] | None = None, real: bool | Collection[str] = ()) -> None:
        self._mocks = dict(mocks or {})
        self._real = frozenset({real} if isinstance(real, str) else () if isinstance(real, bool) else real)
        self._all_real = real is True
        self._taken: dict[str, int] = {}
        self._given: dict[Attempt, Any] = {}

    def check(self, program: Program) -> None:
        """Raises ``NotAsExpected`` for a mock of a node that the flow does not have, or that nobody performs."""
        nodes = Nodes(program)
        for name in self._mocks:
            if problem := nodes.problem(name) or nodes.not_performed(name):
                raise NotAsExpected(problem)
        for name in self._real:
            if name not in nodes.types and (problem := nodes.problem(name)):
                raise NotAsExpected(problem)

    def plays(self, label: str, node_id: str) -> bool:
        """Is there a mock for this node, in some round at least?"""
        return any(name == node_id or _ROUNDS.sub("", name) == label for name in self._mocks)

    def name_of(self, call: Performed) -> str | None:
        """The mock of a call."""
        return next((name for name in (call.node, call.label, call.node_id) if name in self._mocks), None)

    def may_run(self, call: Performed, node_type: str) -> bool:
        """May the node be performed as it is?"""
        return self._all_real or not self._real.isdisjoint((call.node, call.label, call.node_id, node_type))

    async def answer(self, name: str, call: Performed, execution: NodeExecution) -> Json:
        """What the mock says. Raises what the node is to fail with; ``AssertionError`` fails the test."""
        mock = self._mocks[name]
        return await _played(self._turn(name, mock, call) if isinstance(mock, list) else mock, call, execution)

    def forget(self, attempts: Iterable[Attempt]) -> None:
        """These are no repetitions when they come again."""
        for attempt in attempts:
            self._given.pop(attempt, None)

    def _turn(self, name: str, answers: Sequence[Any], call: Performed) -> Any:
        """The next of several answers; the same call again, after a crash, gets what it got."""
        if call.identity not in self._given:
            taken = self._taken.get(name, 0)
            if taken >= len(answers):
                raise NotAsExpected(
                    f"{call.node} is called once more, and its mock {name!r} has {len(answers)} answers"
                )
            self._taken[name] = taken + 1
            self._given[call.identity] = answers[taken]
        return self._given[call.identity]


async def _played(mock: Any, call: Performed, execution: NodeExecution) -> Any:
    match mock:
        case Always(value):
            return value
        case Hangs():
            return await asyncio.get_running_loop().create_future()
        case Later(seconds, answer):
            await asyncio.sleep(seconds)
            return await _played(answer, call, execution)
        case BaseException():
            raise mock
    if isinstance(mock, type) and issubclass(mock, BaseException):
        raise mock
    if not callable(mock):
        return mock
    wants = [p for p in inspect.signature(mock).parameters.values() if p.default is p.empty]
    result = mock(*(dict(call.fields), execution)[: max(1, min(2, len(wants)))])
    return await result if inspect.isawaitable(result) else result


class StandIn:
    """In the place of a node's model: plays its mock, or lets the node itself run where that is allowed."""

    def __init__(self, model: Any, label: str, cast: Cast, witness: Witness) -> None:
        self._model, self._label, self._cast, self._witness = model, label, cast, witness

    def __getattr__(self, name: str) -> Any:
        if name == "node_result_payload" and self._cast.plays(self._label, self._model.id):
            return lambda: None
        return getattr(self._model, name)

    async def arun(self, execution: NodeExecution) -> Json:
        """Perform one call."""
        where = execution._call.frame.where(execution.node_id)
        key = execution.idempotency_key.partition("/")[2]
        fields, now = fields_of(self._model, execution), self._witness.now_ms()
        call = Performed(execution.execution_id, where, self._label, fields, key, execution.attempt, now)
        self._witness.perform(call)
        name = self._cast.name_of(call)
        if name is None:
            return await self._as_it_is(call, execution)
        try:
            return await self._cast.answer(name, call, execution)
        except AssertionError as e:
            raise self._witness.failed(e) from None

    async def _as_it_is(self, call: Performed, execution: NodeExecution) -> Json:
        model = self._model
        if self._cast.plays(self._label, model.id) or not self._cast.may_run(call, model.node_type):
            text = f"{call.node} ({model.node_type}) is performed, and there is no mock for it"
            ways = f"mocks={{{call.node_id!r}: its answer}}, or real={{{call.node_id!r}}} to let it run"
            raise self._witness.failed(NotAsExpected(f"{text}; say {ways}"))
        if not hasattr(model, "arun"):
            result: Json = model.execute(execution)
            return result
        # What is real needs a real loop: this one knows no sockets and no processes.
        return asyncio.run_coroutine_threadsafe(_awaited(model, execution), private_loop()).result()


async def _awaited(model: Any, execution: NodeExecution) -> Json:
    result = model.arun(execution)
    found: Json = await result if inspect.isawaitable(result) else result
    return found


def fields_of(model: Any, execution: NodeExecution) -> dict[str, Json]:
    """The fields that the flow gives a node, evaluated; neither what all nodes have nor its sub-flows."""
    hidden = _NOT_GIVEN | _SCRIPT if model.builtin and model.node_type == "code" else _NOT_GIVEN
    arguments = execution.arguments()
    known = arguments if isinstance(arguments, dict) else {}
    found: dict[str, Json] = {}
    for name in type(model).model_fields:
        if name not in model.model_fields_set or name in hidden:
            continue
        try:
            found[name] = admit(known[name] if name in known else _evaluated(getattr(model, name), execution))
        except InputError:
            continue
    return found


def _evaluated(value: Any, execution: NodeExecution) -> Json:
    """A custom node may hold text that only looks like an expression: it stays as it is."""
    try:
        return execution.evaluate(admit(value))
    except EvaluationError:
        found: Json = value
        return found


class Rehearsed(Definitions):
    """The definitions of a world: every node that somebody performs has a stand-in."""

    def __init__(self, store: FlowStore, cast: Cast, witness: Witness) -> None:
        super().__init__(store)
        self._cast, self._witness = cast, witness

    async def _load(self, closure: str, entry: str, imports: Sequence[str]) -> Program:
        program = await super()._load(closure, entry, imports)
        for cn in _nodes(program):
            label = _label(cn)
            if self._cast.plays(label, cn.id):
                _as_call(cn)
            cn.model = StandIn(cn.model, label, self._cast, self._witness)
        return program


def _as_call(cn: CNode) -> None:
    """Let a node that the machine plays itself, a sub-flow or a wait, be performed like any other effect."""
    cn.host = cn.waiting = None
    cn.step = steps.call(cn)
    if cn.cyclic:
        cn.step = steps.cyclic(cn)


def _nodes(program: Program) -> Iterator[CNode]:
    for graph in program.graphs.values():
        yield from graph.nodes.values()


def _label(cn: CNode) -> str:
    """The address of a node without rounds, items and branches."""
    above = [unquote(step.partition(":")[0]) for step in cn.graph.entry.split("/") if step]
    return "/".join([*above, cn.id])
