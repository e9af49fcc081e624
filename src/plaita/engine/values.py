"""JSON values as the engine sees them: equality, order, text, and what may be stored.

Values are immutable by convention and shared freely. Every check here is bounded: a value built by sharing may be
exponentially larger than its memory, so walks carry a budget.
"""

from __future__ import annotations

import json
import math
from types import NoneType
from typing import Final

from plaita.base.json import Json
from plaita.base.limits import DEPTH_MAX, RESULT_SIZE_MAX, STORED_NODES_MAX, STORED_TEXT_MAX

NUMBERS: Final = frozenset((int, float))
"""The types of numbers. A boolean is never one."""

_BUILT_DEPTH_MAX = 4 * DEPTH_MAX
"""An intermediate result may be deeper than a stored one; rendering it must still end."""

_SMALL_DEPTH, _SMALL_WIDTH, _SMALL_TEXT = 3, 16, 1_000
_PLAIN = frozenset((int, bool, NoneType))

_KINDS = {
    NoneType: "null", bool: "boolean", int: "integer", float: "number", str: "text", list: "list", dict: "object",
}  # fmt: skip

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class OperationError(ValueError):
    """An operation refused its operands. ``reason`` names what it needs and what it got.

    It never leaves the engine: whoever knows the expression makes an ``EvaluationError`` of it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def kind_of(value: Json) -> str:
    """The word for a value's type: null, boolean, integer, number, text, list or object."""
    return _KINDS.get(type(value)) or type(value).__name__


def truthy(value: Json) -> bool:
    """False for null, ``false``, zero and whatever is empty; true for everything else."""
    return bool(value)


def json_equal(a: Json, b: Json) -> bool:
    """Equality of JSON: ``1`` and ``1.0`` are equal, ``1`` and ``true`` are not, at any depth.

    Raises ``OperationError`` when the values are larger than anything that can be stored.
    """
    kind, other = type(a), type(b)
    if kind is str or a is None:
        return kind is other and bool(a == b)
    if kind is bool or other is bool:
        return a is b
    if kind in NUMBERS:
        return other in NUMBERS and bool(a == b)
    return kind is other and (a is b or _deep_equal(a, b))


def _deep_equal(a: Json, b: Json) -> bool:
    pending, budget = [(a, b)], STORED_NODES_MAX
    while pending:
        left, right = pending.pop()
        if len(left) != len(right):
            return False
        budget -= len(left)
        if budget < 0:
            raise OperationError(f"values of more than {STORED_NODES_MAX} parts cannot be compared")
        if type(left) is dict:
            if left.keys() != right.keys():
                return False
            pairs = [(v, right[k]) for k, v in left.items()]
        else:
            pairs = list(zip(left, right, strict=True))
        for x, y in pairs:
            if x is y:
                continue
            if type(x) is type(y) and (type(x) is list or type(x) is dict):
                pending.append((x, y))
            elif not json_equal(x, y):
                return False
    return True


def check_order(a: Json, b: Json) -> None:
    """Raise ``OperationError`` unless both are numbers or both are text: nothing else has an order."""
    if not (type(a) in NUMBERS and type(b) in NUMBERS) and not (type(a) is str and type(b) is str):
        raise OperationError(f"needs two numbers or two texts, not {kind_of(a)} and {kind_of(b)}")


def less(a: Json, b: Json) -> bool:
    """``a < b`` for two numbers or two texts."""
    check_order(a, b)
    return bool(a < b)


def less_or_equal(a: Json, b: Json) -> bool:
    """``a <= b`` for two numbers or two texts."""
    check_order(a, b)
    return bool(a <= b)


def greater(a: Json, b: Json) -> bool:
    """``a > b`` for two numbers or two texts."""
    check_order(a, b)
    return bool(a > b)


def greater_or_equal(a: Json, b: Json) -> bool:
    """``a >= b`` for two numbers or two texts."""
    check_order(a, b)
    return bool(a >= b)


def is_member(item: Json, container: Json) -> bool:
    """Is ``item`` an element of the list, a part of the text, or a key of the object?"""
    kind = type(container)
    if kind is list:
        return any(json_equal(item, each) for each in container)
    if kind is dict:
        return type(item) is str and item in container
    if kind is str and type(item) is str:
        return item in container
    raise OperationError(f"cannot look for {kind_of(item)} in {kind_of(container)}")


def render(value: Json) -> str:
    """The text of a value inside other text: null is empty, everything but text is written as JSON."""
    kind = type(value)
    if kind is str:
        return str(value)
    if value is None:
        return ""
    if kind is int:
        return str(value)
    if kind is list or kind is dict:
        check_size(value)
    return _encode(value)


def check_size(value: Json) -> None:
    """Refuse a container whose text would pass ``RESULT_SIZE_MAX``, before that text is built."""
    _walk(value, _BUILT_DEPTH_MAX, STORED_NODES_MAX, RESULT_SIZE_MAX)


def check_stored(value: Json) -> Json:
    """Return ``value`` if it may be stored: at most 64 deep, within the size caps, finite.

    Raises ``OperationError``. One bounded walk; a scalar costs nothing.
    """
    if (type(value) is list or type(value) is dict) and not _is_small(value, _SMALL_DEPTH):
        _walk(value, DEPTH_MAX, STORED_NODES_MAX, STORED_TEXT_MAX)
    return value


def _is_small(value: Json, depth: int) -> bool:
    """Is the value far below every cap? Most are, and then no budget has to be kept."""
    if len(value) > _SMALL_WIDTH:
        return False
    for member in value.values() if type(value) is dict else value:
        kind = type(member)
        if kind in _PLAIN:
            continue
        if kind is str:
            if len(member) > _SMALL_TEXT:
                return False
        elif kind is float or not depth or not _is_small(member, depth - 1):
            return False
    return True


def _walk(value: Json, depth_max: int, nodes_max: int, text_max: int) -> None:
    # Level by level: no recursion, and the nodes budget is charged before members are looked at.
    level, depth, nodes, chars = [value], 0, 0, 0
    while level:
        depth += 1
        if depth > depth_max:
            raise OperationError(f"a value nested deeper than {depth_max} cannot be stored")
        deeper: list[Json] = []
        for container in level:
            nodes += len(container)
            if nodes > nodes_max:
                raise OperationError(f"a value of more than {nodes_max} parts is too large")
            members = container
            if type(container) is dict:
                chars += len("".join(container))
                members = container.values()
            for member in members:
                kind = type(member)
                if kind is str:
                    chars += len(member)
                elif kind is dict or kind is list:
                    deeper.append(member)
                elif kind is float and not math.isfinite(member):
                    raise OperationError(f"{member} is not a JSON number")
            if chars > text_max:
                raise OperationError(f"a value of more than {text_max} characters is too large")
        level = deeper


def copied(value: Json) -> Json:
    """A deep copy, for code that may change what it is given."""
    if type(value) is list:
        return [copied(v) for v in value]
    if type(value) is dict:
        return {k: copied(v) for k, v in value.items()}
    return value
