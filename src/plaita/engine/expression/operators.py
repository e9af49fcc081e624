"""Infix operators to closures: integer fast paths that fall through to the checked operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from plaita.base.json import Json
from plaita.engine.expression import arithmetic
from plaita.engine.expression.compiled import Built, Run, Site, constant_of
from plaita.engine.expression.errors import EvaluationError
from plaita.engine.expression.scope import Scope
from plaita.engine.values import (
    OperationError,
    greater,
    greater_or_equal,
    is_member,
    json_equal,
    less,
    less_or_equal,
)

Operation: TypeAlias = Callable[[Json, Json], Json]

_SMALL: Final = 2**62
"""Results below need no check against the digit cap."""


def _differs(a: Json, b: Json) -> bool:
    return not json_equal(a, b)


def _is_no_member(item: Json, container: Json) -> bool:
    return not is_member(item, container)


OPERATIONS: Final[dict[str, Operation]] = {
    "+": arithmetic.add,
    "-": arithmetic.subtract,
    "*": arithmetic.multiply,
    "/": arithmetic.divide,
    "%": arithmetic.modulo,
    "==": json_equal,
    "!=": _differs,
    "<": less,
    "<=": less_or_equal,
    ">": greater,
    ">=": greater_or_equal,
    "in": is_member,
    "not in": _is_no_member,
}


def compile_binary(operator: str, label: str, left: Built, right: Built, site: Site) -> Built:
    """The closure of ``left operator right``; ``label`` is what an error calls the operator."""
    if operator in ("and", "or"):
        run = _and(left.run, right.run) if operator == "and" else _or(left.run, right.run)
        return Built(run, unchecked=left.unchecked or right.unchecked)
    slow = _guarded(OPERATIONS[operator], label, site)
    if right.constant:
        special = _with_constant(operator, left, right.value, slow)
        if special is not None:
            return special
    if operator in _NUMERIC:
        return Built(_NUMERIC[operator](left.run, right.run, slow))
    return Built(_plain(left.run, right.run, slow))


def _with_constant(operator: str, left: Built, constant: Json, slow: Operation) -> Built | None:
    if left.constant:
        return _fold(slow, left.value, constant) if _is_small(left.value) and _is_small(constant) else None
    if operator in ("==", "!="):
        simple = _equals_constant(left.run, constant, operator == "==")
        return None if simple is None else Built(simple)
    make = _NUMERIC_CONSTANT.get(operator)
    if make is not None and type(constant) is int and -_SMALL < constant < _SMALL:
        return Built(make(left.run, constant, slow))
    return None


def _guarded(work: Operation, label: str, site: Site) -> Operation:
    def run(a: Json, b: Json) -> Json:
        try:
            return work(a, b)
        except OperationError as e:
            raise site.failure(label, e) from None

    return run


def _is_small(value: Json) -> bool:
    kind = type(value)
    return value is None or kind is bool or kind is float or (kind is int and abs(value) < _SMALL)


def _fold(slow: Operation, a: Json, b: Json) -> Built | None:
    try:
        value = slow(a, b)
    except EvaluationError:  # it fails when it runs, not when it loads
        return None
    return constant_of(value)


def _and(left: Run, right: Run) -> Run:
    return lambda s: left(s) and right(s)


def _or(left: Run, right: Run) -> Run:
    return lambda s: left(s) or right(s)


def _plain(left: Run, right: Run, slow: Operation) -> Run:
    return lambda s: slow(left(s), right(s))


def _equals_constant(left: Run, constant: Json, holds: bool) -> Run | None:
    """Equality with text, null or a whole number is Python's, once booleans are told apart."""
    kind = type(constant)
    if kind is str or constant is None:
        return (lambda s: left(s) == constant) if holds else (lambda s: left(s) != constant)
    if kind is not int:
        return None

    def run(s: Scope) -> bool:
        value = left(s)
        return (type(value) is not bool and value == constant) is holds

    return run


def _add(left: Run, right: Run, slow: Operation) -> Run:
    def run(s: Scope) -> Json:
        a, b = left(s), right(s)
        if type(a) is int and type(b) is int:
            result = a + b
            if -_SMALL < result < _SMALL:
                return result
        return slow(a, b)

    return run


def _subtract(left: Run, right: Run, slow: Operation) -> Run:
    def run(s: Scope) -> Json:
        a, b = left(s), right(s)
        if type(a) is int and type(b) is int:
            result = a - b
            if -_SMALL < result < _SMALL:
                return result
        return slow(a, b)

    return run


def _multiply(left: Run, right: Run, slow: Operation) -> Run:
    def run(s: Scope) -> Json:
        a, b = left(s), right(s)
        if type(a) is int and type(b) is int:
            result = a * b
            if -_SMALL < result < _SMALL:
                return result
        return slow(a, b)

    return run


def _add_constant(left: Run, b: int, slow: Operation) -> Run:
    def run(s: Scope) -> Json:
        a = left(s)
        if type(a) is int and -_SMALL < a < _SMALL:
            return a + b
        return slow(a, b)

    return run


def _subtract_constant(left: Run, b: int, slow: Operation) -> Run:
    def run(s: Scope) -> Json:
        a = left(s)
        if type(a) is int and -_SMALL < a < _SMALL:
            return a - b
        return slow(a, b)

    return run


def _multiply_constant(left: Run, b: int, slow: Operation) -> Run:
    def run(s: Scope) -> Json:
        a = left(s)
        if type(a) is int and -_SMALL < a < _SMALL:
            return a * b
        return slow(a, b)

    return run


def _less_constant(left: Run, b: int, slow: Operation) -> Run:
    def run(s: Scope) -> Json:
        a = left(s)
        return a < b if type(a) is int else slow(a, b)

    return run


def _greater_constant(left: Run, b: int, slow: Operation) -> Run:
    def run(s: Scope) -> Json:
        a = left(s)
        return a > b if type(a) is int else slow(a, b)

    return run


_NUMERIC: Final = {"+": _add, "-": _subtract, "*": _multiply}
_NUMERIC_CONSTANT: Final = {
    "+": _add_constant, "-": _subtract_constant, "*": _multiply_constant, "<": _less_constant, ">": _greater_constant,
}  # fmt: skip
