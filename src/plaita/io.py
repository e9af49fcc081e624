"""Declared types and expressions for programs: ``Property``, ``match``, ``evaluate``, and the functions of ``$F``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from plaita.base.errors import InputError
from plaita.base.json import Json, admit
from plaita.core import types
from plaita.core.context import refuse_renaming
from plaita.core.expression import (
    ExpressionEvaluator,
    ExpressionRegistry,
    FunctionCategory,
    get_default_expression_registry,
)
from plaita.engine.types import conform, parse_property
from plaita.node.property import Property

__all__ = [
    "REGISTERED_FUNCTIONS", "ExpressionRegistry", "FunctionCategory", "Property", "evaluate",
    "get_default_expression_registry", "match", "parse_function", "register_function", "types",
]  # fmt: skip


def match(props: Property | Mapping[str, Any] | str, obj: Any, context: Any = None) -> bool:
    """Does a value fit a declared type? ``context`` has no effect. Raises ``InputError`` for a type that is none."""
    declared = parse_property(props)
    try:
        conform(declared, admit(obj))
    except InputError:
        return False
    return True


def evaluate(
    value: Json, context: Mapping[str, Json], prefix: str = "$", registry: ExpressionRegistry | None = None
) -> Json:
    """The value of a field in a context such as ``{"$INPUT": {…}, "$NODE": {…}}``.

    Raises ``FlowLoadError`` when an expression cannot be read and ``EvaluationError`` when it fails.
    """
    refuse_renaming({"express_prefix": prefix})
    return ExpressionEvaluator(registry).evaluate(value, context)


def parse_function(
    expression: str, context: Mapping[str, Json], prefix: str = "$", registry: ExpressionRegistry | None = None
) -> Json:
    """The value of a call such as ``$F.add(1, 2)``; any other text comes back as it is."""
    if not expression.startswith(f"{prefix}F."):
        return expression
    return evaluate(expression, context, prefix, registry)


def register_function(name: str, func: Callable[..., Any]) -> None:
    """Make a function known to every flow of this process as ``$F.name``, replacing one of that name."""
    get_default_expression_registry().register(name, func, FunctionCategory.TYPE, override=True)


class _Functions(Mapping[str, Callable[..., Any]]):
    """The functions of ``$F`` in this process, by name."""

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in get_default_expression_registry():
            raise KeyError(name)

        def call(*arguments: Json) -> Json:
            given = ", ".join(f"$INPUT[{i}]" for i in range(len(arguments)))
            return evaluate(f"$F.{name}({given})", {"$INPUT": list(arguments)})

        return call

    def __iter__(self) -> Iterator[str]:
        return iter(get_default_expression_registry().table())

    def __len__(self) -> int:
        return len(get_default_expression_registry().table())


REGISTERED_FUNCTIONS = _Functions()
