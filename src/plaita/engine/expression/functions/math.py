"""Functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from plaita.base.json import Json
from plaita.base.limits import INTEGER_DIGITS_MAX
from plaita.engine.expression import arithmetic
from plaita.engine.expression.function import FunctionCategory, FunctionSpec
from plaita.engine.expression.functions.arguments import integer_of, number_of
from plaita.engine.values import OperationError


def absolute(x: Json) -> Json:
    """The number without its sign."""
    return abs(number_of(x))


def ceil(x: Json) -> Json:
    """The smallest integer that is not below ``x``."""
    return math.ceil(number_of(x))


def floor(x: Json) -> Json:
    """The largest integer that is not above ``x``."""
    return math.floor(number_of(x))


def trunc(x: Json) -> Json:
    """The integer part."""
    return math.trunc(number_of(x))


def rounded(x: Json, digits: Json = None) -> Json:
    """``x`` rounded half to even; to an integer without ``digits``."""
    number = number_of(x)
    if digits is None:
        return round(number)
    if abs(integer_of(digits)) > INTEGER_DIGITS_MAX:
        raise OperationError(f"takes at most {INTEGER_DIGITS_MAX} digits")
    try:
        return arithmetic.checked(round(number, digits))
    except OverflowError:
        raise OperationError("the result is too large for a number") from None


def sqrt(x: Json) -> Json:
    """The square root of a number that is not negative."""
    number = number_of(x)
    if number < 0:
        raise OperationError("has no real result for a negative number")
    try:
        return math.sqrt(number)
    except OverflowError:
        raise OperationError("the result is too large for a number") from None


def _math(
    name: str, call: Callable[..., Json], arity: tuple[int, int], text: str, operator: str | None = None
) -> FunctionSpec:
    return FunctionSpec(name, call, FunctionCategory.MATH, *arity, operator=operator, description=text)


FUNCTIONS: Final = (
    _math("add", arithmetic.add, (2, 2), "sum of numbers; texts or lists one after the other", "+"),
    _math("sub", arithmetic.subtract, (2, 2), "difference", "-"),
    _math("mul", arithmetic.multiply, (2, 2), "product; a text or list repeated", "*"),
    _math("div", arithmetic.divide, (2, 2), "quotient", "/"),
    _math("mod", arithmetic.modulo, (2, 2), "remainder", "%"),
    _math("pow", arithmetic.power, (2, 2), "power"),
    _math("abs", absolute, (1, 1), "without sign"),
    _math("ceil", ceil, (1, 1), "integer not below"),
    _math("floor", floor, (1, 1), "integer not above"),
    _math("round", rounded, (1, 2), "rounded half to even, to a number of digits"),
    _math("trunc", trunc, (1, 1), "integer part"),
    _math("sqrt", sqrt, (1, 1), "square root"),
)
