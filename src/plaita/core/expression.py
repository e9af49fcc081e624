"""The expression language under its documented import path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from plaita.base.clock import SystemClock
from plaita.base.errors import FlowLoadError
from plaita.base.issues import Issue
from plaita.base.json import Json, admit
from plaita.engine.expression import (
    EvaluationError,
    ExpressionRegistry,
    ExpressionSyntaxError,
    FunctionCategory,
    FunctionTable,
    compile_value,
    get_default_expression_registry,
)
from plaita.engine.expression.documented import scope_of

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
        scope = scope_of(admit(dict(context)), SystemClock().now_ms())
        compiled = compile_value(value, scope.names, self.functions)
        errors = [f for f in compiled.findings if f.severity == "error"]
        if errors:
            issues = [Issue(f.severity, f.code, f"${f.path}", f.message, f.hint, column=f.column) for f in errors]
            raise FlowLoadError(issues, "the expression")
        return partial(compiled.run, scope)
