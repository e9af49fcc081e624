"""Functions of text. What a result would need is known before it is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from plaita.base.json import Json
from plaita.engine.expression.arithmetic import check_room
from plaita.engine.expression.function import FunctionCategory, FunctionSpec
from plaita.engine.expression.functions.arguments import sequence_of, text_of
from plaita.engine.values import OperationError, kind_of, render


def replace(text: Json, old: Json, new: Json) -> str:
    """Every ``old`` in the text replaced by ``new``."""
    whole, part, other = text_of(text), text_of(old), text_of(new)
    if len(other) > len(part):
        check_room(len(whole) + whole.count(part) * (len(other) - len(part)))
    return whole.replace(part, other)


def split(text: Json, separator: Json) -> list[str]:
    """The parts between separators; a null separator means runs of white space."""
    whole = text_of(text)
    if separator is None:
        return whole.split()
    if text_of(separator) == "":
        raise OperationError("needs a separator that is not empty")
    check_room(whole.count(separator) + 1)
    return whole.split(separator)


def join(items: Json, separator: Json) -> str:
    """The texts of a list with a separator between them."""
    parts, between = sequence_of(items), text_of(separator)
    total = max(len(parts) - 1, 0) * len(between)
    for i, part in enumerate(parts):
        if type(part) is not str:
            raise OperationError(f"needs a list of texts; item {i} is {kind_of(part)}")
        total += len(part)
    check_room(total)
    return between.join(parts)


def starts_with(text: Json, prefix: Json) -> bool:
    """Does the text begin with ``prefix``?"""
    return text_of(text).startswith(text_of(prefix))


def ends_with(text: Json, suffix: Json) -> bool:
    """Does the text end with ``suffix``?"""
    return text_of(text).endswith(text_of(suffix))


def concat(*values: Json) -> str:
    """The values as text, one after the other."""
    parts, total = [], 0
    for value in values:
        part = render(value)
        total += len(part)
        check_room(total)
        parts.append(part)
    return "".join(parts)


def _method(name: str, method: Callable[[str], Json], description: str) -> FunctionSpec:
    def call(text: Json) -> Json:
        return method(text_of(text))

    return FunctionSpec(name, call, FunctionCategory.STRING, 1, 1, description=description)


def _text(name: str, call: Callable[..., Json], low: int, high: int | None, description: str) -> FunctionSpec:
    return FunctionSpec(name, call, FunctionCategory.STRING, low, high, description=description)


FUNCTIONS: Final = (
    _method("lower", str.lower, "in lower case"),
    _method("upper", str.upper, "in upper case"),
    _method("capitalize", str.capitalize, "first letter in upper case, the rest in lower case"),
    _method("title", str.title, "every word capitalized"),
    _method("strip", str.strip, "without white space at both ends"),
    _method("lstrip", str.lstrip, "without white space at the start"),
    _method("rstrip", str.rstrip, "without white space at the end"),
    _method("isDigit", str.isdigit, "true when there are digits only"),
    _text("replace", replace, 3, 3, "every occurrence replaced"),
    FunctionSpec("split", split, FunctionCategory.STRING, 2, 2, yields="new", description="parts between separators"),
    _text("join", join, 2, 2, "texts of a list with a separator between them"),
    _text("startswith", starts_with, 2, 2, "begins with"),
    _text("endswith", ends_with, 2, 2, "ends with"),
    _text("concat", concat, 0, None, "values as text, one after the other"),
)
