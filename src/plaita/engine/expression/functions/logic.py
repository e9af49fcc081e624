"""Truth and comparison. ``and``, ``or`` and ``ifelse`` evaluate only what they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from plaita.base.json import Json
from plaita.engine.expression.compiled import Run
from plaita.engine.expression.function import FunctionCategory, FunctionSpec
from plaita.engine.expression.operators import OPERATIONS
from plaita.engine.expression.scope import Scope
from plaita.engine.values import is_member


def both(scope: Scope, a: Run, b: Run) -> Json:
    """The first value if it is falsy, else the second."""
    return a(scope) and b(scope)


def either(scope: Scope, *values: Run) -> Json:
    """The first truthy value, else false."""
    for value in values:
        found = value(scope)
        if found:
            return found
    return False


def choose(scope: Scope, test: Run, then: Run, otherwise: Run) -> Json:
    """``then`` when the test is truthy, else ``otherwise``; the other one is not evaluated."""
    return then(scope) if test(scope) else otherwise(scope)


def negate(value: Json) -> bool:
    """True when the value is falsy."""
    return not value


def contains(container: Json, item: Json) -> bool:
    """Is the item an element of the list, a part of the text or a key of the object?"""
    return is_member(item, container)


def contains_not(container: Json, item: Json) -> bool:
    """The opposite of ``contains``."""
    return not is_member(item, container)


def _lazy(name: str, call: Callable[..., Json], low: int, high: int | None, description: str) -> FunctionSpec:
    return FunctionSpec(
        name, call, FunctionCategory.LOGIC, low, high, takes="runs", yields="part", description=description
    )


def _infix(name: str, operator: str) -> FunctionSpec:
    return FunctionSpec(
        name, OPERATIONS[operator], FunctionCategory.LOGIC, 2, 2, operator=operator, description=f"a {operator} b"
    )


FUNCTIONS: Final = (
    _lazy("and", both, 2, 2, "first value if falsy, else the second"),
    _lazy("or", either, 0, None, "first truthy value, else false"),
    _lazy("ifelse", choose, 3, 3, "second or third value, as the first is truthy or not"),
    FunctionSpec("not", negate, FunctionCategory.LOGIC, 1, 1, description="true when falsy"),
    _infix("eq", "=="),
    _infix("ne", "!="),
    _infix("gt", ">"),
    _infix("gte", ">="),
    _infix("lt", "<"),
    _infix("lte", "<="),
    _infix("in", "in"),
    _infix("notIn", "not in"),
    FunctionSpec("contains", contains, FunctionCategory.LOGIC, 2, 2, description="b in a"),
    FunctionSpec("notContains", contains_not, FunctionCategory.LOGIC, 2, 2, description="b not in a"),
)
