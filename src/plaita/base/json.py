"""JSON values: the one kind of state there is.

``admit`` is the door: it checks and copies a foreign value once. Inside, values are immutable and shared.
``encode``/``decode`` are the fast codec for values that have been admitted or built under the caps; integers beyond
64 bits are tagged so that they survive exactly.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, TypeAlias

import orjson

from plaita.base.errors import InputError
from plaita.base.limits import DEPTH_MAX, INTEGER_DIGITS_MAX, STORED_NODES_MAX, STORED_TEXT_MAX

Json: TypeAlias = Any
"""``None | bool | int | float | str | list[Json] | dict[str, Json]``; recursive aliases cost more than they prove."""

INTEGER_MAX = 10**INTEGER_DIGITS_MAX
_BIG = "\u0000int"
_BASES: Final[tuple[type[Any], ...]] = (str, int, float, list, dict)
_STEP = {"'": "\\'", "\\": "\\\\"}


def step_of(path: str, key: str | int) -> str:
    """Extend a JSON path: ``step_of("$", "a") == "$.a"``, ``step_of("$", 0) == "$[0]"``, odd keys quoted."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if key.isidentifier():
        return f"{path}.{key}"
    quoted = "".join(_STEP.get(c, c) for c in key)
    return f"{path}['{quoted}']"


class _Refused(Exception):
    """What is wrong, and where: the steps are added on the way out, so that sound values pay nothing for them."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str | int] = []


def admit(value: object, path: str = "$") -> Json:
    """Check that ``value`` is JSON within the caps and return a copy; raises ``InputError`` with the path.

    Refused: NaN and infinities, keys that are not text, cycles (as depth over 64), lone surrogates, integers of more
    than 4,000 digits, tuples, sets and any other type.
    """
    try:
        return _admit(value, DEPTH_MAX, [STORED_NODES_MAX, STORED_TEXT_MAX])
    except _Refused as e:
        for step in reversed(e.steps):
            path = step_of(path, step)
        raise InputError(path, e.reason) from None


def _admit(value: Any, depth: int, budget: list[int]) -> Json:
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return _text(value, budget)
    if kind is int:
        if not -INTEGER_MAX < value < INTEGER_MAX:
            raise _Refused(f"an integer may have at most {INTEGER_DIGITS_MAX} digits")
        return value
    if kind is float:
        if not math.isfinite(value):
            raise _Refused(f"{value} is not a JSON number")
        return value
    if kind is list or kind is dict:
        if depth == 0:
            raise _Refused(f"nested deeper than {DEPTH_MAX} (or containing itself)")
        budget[0] -= len(value)
        if budget[0] < 0:
            raise _Refused(f"more than {STORED_NODES_MAX} values")
        return _admit_list(value, depth, budget) if kind is list else _admit_object(value, depth, budget)
    for base in _BASES:
        if isinstance(value, base):
            return _admit(base(value), depth, budget)
    raise _Refused(f"{kind.__name__} is not a JSON type; use null, true/false, a number, text, a list or an object")


def _admit_list(value: list[object], depth: int, budget: list[int]) -> Json:
    out: list[Json] = []
    try:
        for item in value:
            out.append(_admit(item, depth - 1, budget))
    except _Refused as e:
        e.steps.append(len(out))
        raise
    return out


def _admit_object(value: dict[object, object], depth: int, budget: list[int]) -> Json:
    out: dict[str, Json] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise _Refused(f"key {key!r} is {type(key).__name__}; keys are text")
        name = _text(str(key), budget)
        try:
            out[name] = _admit(item, depth - 1, budget)
        except _Refused as e:
            e.steps.append(name)
            raise
    return out


def _text(value: str, budget: list[int]) -> str:
    budget[1] -= len(value)
    if budget[1] < 0:
        raise _Refused(f"more than {STORED_TEXT_MAX} characters")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _Refused("text with a lone surrogate is not Unicode") from None
    return value


def encode(value: Json) -> bytes:
    """Serialise an admitted value; ``decode`` gives back an equal one, integers of any size included."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(_tag(value))


def decode(data: bytes | str) -> Json:
    """Read what ``encode`` wrote. Only for state of our own: foreign text goes through ``parse``."""
    value = orjson.loads(data)
    marked = _BIG_BYTES in data if isinstance(data, bytes) else _BIG_TEXT in data
    return _untag(value) if marked else value


_BIG_TEXT = "\\u0000int"
_BIG_BYTES = _BIG_TEXT.encode()
_INT64 = 2**63


def _tag(value: Json) -> Json:
    if isinstance(value, list):
        return [_tag(v) for v in value]
    if isinstance(value, dict):
        tagged = {k: _tag(v) for k, v in value.items()}
        return {_BIG: tagged} if _BIG in value else tagged
    if type(value) is int and not -_INT64 <= value < 2 * _INT64:
        return {_BIG: str(value)}
    return value


def _untag(value: Json) -> Json:
    if isinstance(value, list):
        return [_untag(v) for v in value]
    if isinstance(value, dict):
        if len(value) == 1 and _BIG in value:
            inner = value[_BIG]
            return int(inner) if isinstance(inner, str) else {k: _untag(v) for k, v in inner.items()}
        return {k: _untag(v) for k, v in value.items()}
    return value


def parse(text: str | bytes, what: str = "$") -> Json:
    """Read foreign JSON text: duplicate keys, NaN, infinities, overlong integers and bad Unicode are ``InputError``."""
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_constant, parse_int=_integer, parse_float=_float
        )
    except RecursionError:
        raise InputError(what, f"nested deeper than {DEPTH_MAX}") from None
    except json.JSONDecodeError as e:
        raise InputError(what, f"not JSON: {e.msg} (line {e.lineno}, column {e.colno})") from None
    except UnicodeDecodeError:
        raise InputError(what, "not UTF-8 text") from None
    return admit(value, what)


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        double = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        raise InputError("$", f"key {double!r} appears twice in one object")
    return out


def _constant(name: str) -> Json:
    raise InputError("$", f"{name} is not a JSON number")


def _integer(digits: str) -> int:
    if len(digits) > INTEGER_DIGITS_MAX:
        raise InputError("$", f"an integer may have at most {INTEGER_DIGITS_MAX} digits")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise InputError("$", f"{digits} is too large for a number")
    return value
