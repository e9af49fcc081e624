"""Arithmetic on JSON values. Every guard comes before the work, every result is finite and within the digit cap."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Final, NoReturn

from plaita.base.json import INTEGER_MAX, Json
from plaita.base.limits import INTEGER_DIGITS_MAX, RESULT_SIZE_MAX
from plaita.engine.values import NUMBERS, OperationError, check_stored, kind_of

EXPONENT_MAX: Final = 1_000_000
_INTEGER_BITS_MAX: Final = INTEGER_MAX.bit_length()


def refuse(needed: str, *values: Json) -> NoReturn:
    """Raise ``OperationError``: what an operation needs and the types it got."""
    raise OperationError(f"needs {needed}, not {' and '.join(kind_of(v) for v in values)}")


def check_room(size: int) -> None:
    """Refuse to build a text or list of more than ``RESULT_SIZE_MAX`` characters or elements."""
    if size > RESULT_SIZE_MAX:
        raise OperationError(
            f"would build a result that is too large: {size} characters or elements, limit {RESULT_SIZE_MAX}"
        )


def checked(number: int | float) -> int | float:
    """The number, if it is one of JSON within the caps."""
    if type(number) is int:
        if not -INTEGER_MAX < number < INTEGER_MAX:
            raise OperationError(f"the result has more than {INTEGER_DIGITS_MAX} digits")
    elif not math.isfinite(number):
        raise OperationError("the result is too large for a number")
    return number


def _calculated(work: Callable[[Json, Json], Json], a: Json, b: Json) -> Json:
    try:
        return checked(work(a, b))
    except OverflowError:
        raise OperationError("the result is too large for a number") from None
    except ZeroDivisionError:
        raise OperationError("cannot divide by zero") from None


def add(a: Json, b: Json) -> Json:
    """Sum of numbers, or two texts or two lists one after the other."""
    kind, other = type(a), type(b)
    if kind in NUMBERS and other in NUMBERS:
        return _calculated(operator.add, a, b)
    if kind is other and (kind is str or kind is list):
        check_room(len(a) + len(b))
        return check_stored(a + b)
    refuse("two numbers, two texts or two lists", a, b)


def subtract(a: Json, b: Json) -> Json:
    """Difference of two numbers."""
    if type(a) in NUMBERS and type(b) in NUMBERS:
        return _calculated(operator.sub, a, b)
    refuse("two numbers", a, b)


def multiply(a: Json, b: Json) -> Json:
    """Product of two numbers, or a text or list repeated."""
    if type(a) in NUMBERS and type(b) in NUMBERS:
        return _calculated(operator.mul, a, b)
    if type(a) is int:
        a, b = b, a
    if type(b) is int and (type(a) is str or type(a) is list):
        times = max(0, b) if a else 0
        check_room(len(a) * times)
        return check_stored(a * times)
    refuse("two numbers, or a text or list and an integer", a, b)


def divide(a: Json, b: Json) -> Json:
    """Quotient of two numbers; always a floating-point number."""
    if type(a) in NUMBERS and type(b) in NUMBERS:
        return _calculated(operator.truediv, a, b)
    refuse("two numbers", a, b)


def modulo(a: Json, b: Json) -> Json:
    """Remainder with the sign of the divisor. Numbers only: there is no formatting of text."""
    if type(a) in NUMBERS and type(b) in NUMBERS:
        return _calculated(operator.mod, a, b)
    refuse("two numbers", a, b)


def power(a: Json, b: Json) -> Json:
    """``a`` to the power of ``b``; the number of digits is bounded before anything is computed."""
    if type(a) not in NUMBERS or type(b) not in NUMBERS:
        refuse("two numbers", a, b)
    if not -EXPONENT_MAX <= b <= EXPONENT_MAX:
        raise OperationError(f"takes exponents up to {EXPONENT_MAX}")
    if type(a) is int and type(b) is int and b > 1 and abs(a) > 1 and (a.bit_length() - 1) * b > _INTEGER_BITS_MAX:
        raise OperationError(f"would give more than {INTEGER_DIGITS_MAX} digits")
    if a < 0 and type(b) is float and not b.is_integer():
        raise OperationError("has no real result for a negative number and a fraction")
    return _calculated(operator.pow, a, b)
