"""The expression language under its documented import path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from plaita.base.clock import SystemClock
from plaita.base.errors import FlowLoadError
from plaita.base.issues import Issue
from plaita.base.json import Json, admit
from plaita.engine.expression import (
    ABSENT,
    EvaluationError,
    ExpressionRegistry,
    ExpressionSyntaxError,
    FunctionCategory,
    FunctionTable,
    Names,
    compile_value,
    get_default_expression_registry,
)

__all__ = [
    "EvaluationError",
    "ExpressionEvaluator",
    "ExpressionRegistry",
    "ExpressionSyntaxError",
    "FunctionCategory",
    "get_default_expression_registry",
]


class ExpressionEvaluator:
    """Evaluates fields with the functions of one registry, outside of a flow or (as ``functions``) in one."""

    def __init__(self, registry: ExpressionRegistry | None = None) -> None:
        self.registry = registry or get_default_expression_registry()

    @property
    def functions(self) -> FunctionTable:
        """What ``$F`` knows, for the compiler of a flow."""
        return self.registry.table()

    def evaluate(self, value: Json, context: Mapping[str, Json]) -> Json:
        """The value of a field in a context such as ``{"$INPUT": {…}, "$NODE": {…}}``.

        Raises ``FlowLoadError`` when an expression cannot load and ``EvaluationError`` when it fails.
        """
        return self.prepared(value, context)()

    def prepared(self, value: Json, context: Mapping[str, Json]) -> Callable[[], Json]:
        """The same, compiled once for any number of evaluations."""
        scope = _scope_of(admit(dict(context)))
        names = Names((frozenset(scope.nodes),), frozenset(scope.extra or ()))
        compiled = compile_value(value, names, self.functions)
        errors = [f for f in compiled.findings if f.severity == "error"]
        if errors:
            issues = [Issue(f.severity, f.code, f"${f.path}", f.message, f.hint, column=f.column) for f in errors]
            raise FlowLoadError(issues, "the expression")
        return partial(compiled.run, scope)


@dataclass(slots=True)
class _Facts:
    execution_id: str
    now_ms: int
    timezone: str | None = None


@dataclass(slots=True)
class _ContextScope:
    """A documented context as a scope."""

    input: Json
    nodes: dict[str, Json]
    parent: _ContextScope | None
    globals: dict[str, Json]
    env: Mapping[str, str]
    flow_id: str | None
    last_id: str | None
    branch: Json
    extra: dict[str, Json] | None
    run: _Facts = field(compare=False)


_OWN = ("INPUT", "NODE", "PARENT", "GLOBAL", "ENV", "FLOW_ID", "EXECUTION_ID", "LAST_NODE", "BRANCH")


def _scope_of(context: Mapping[str, Json]) -> _ContextScope:
    roots = {key.removeprefix("$"): value for key, value in context.items()}
    parent = roots.get("PARENT")
    return _ContextScope(
        input=roots.get("INPUT", ABSENT),
        nodes=roots.get("NODE") or {},
        parent=_scope_of(parent) if parent else None,
        globals=roots.get("GLOBAL") or {},
        env=roots.get("ENV") or {},
        flow_id=roots.get("FLOW_ID"),
        last_id=roots.get("LAST_NODE"),
        branch=roots.get("BRANCH"),
        extra={key: value for key, value in roots.items() if key not in _OWN},
        run=_Facts(roots.get("EXECUTION_ID") or "", SystemClock().now_ms()),
    )
