"""Functions of objects. None changes its argument: what the documentation calls a change is a new object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from plaita.base.json import Json
from plaita.engine.expression.function import FunctionCategory, FunctionSpec
from plaita.engine.expression.functions.arguments import key_of, object_of


def keys(value: Json) -> list[str]:
    """The keys, in order."""
    return list(object_of(value))


def values(value: Json) -> list[Json]:
    """The values, in order of the keys."""
    return list(object_of(value).values())


def items(value: Json) -> list[Json]:
    """A list of ``[key, value]``."""
    return [[key, member] for key, member in object_of(value).items()]


def get(value: Json, key: Json, default: Json = None) -> Json:
    """The value of a key, or the default when the key is absent."""
    return object_of(value).get(key_of(key), default)


def with_key(value: Json, key: Json, member: Json) -> dict[str, Json]:
    """The object with one key set."""
    return {**object_of(value), key_of(key): member}


def without_key(value: Json, key: Json) -> dict[str, Json]:
    """The object without a key."""
    unwanted = key_of(key)
    return {k: v for k, v in object_of(value).items() if k != unwanted}


def cleared(value: Json) -> dict[str, Json]:
    """An object without keys."""
    object_of(value)
    return {}


def _object(
    names: str,
    call: Callable[..., Json],
    arity: tuple[int, int],
    yields: Literal["checked", "part", "new"],
    description: str,
) -> list[FunctionSpec]:
    return [
        FunctionSpec(name, call, FunctionCategory.DICT, *arity, yields=yields, description=description)
        for name in names.split()
    ]


FUNCTIONS: Final = (
    *_object("keys getDictKeys", keys, (1, 1), "part", "keys, in order"),
    *_object("values getDictValues", values, (1, 1), "part", "values, in order of the keys"),
    *_object("items", items, (1, 1), "new", "list of [key, value]"),
    *_object("get getDictValue", get, (2, 3), "part", "value of a key, or a default"),
    *_object("set setDictValue", with_key, (3, 3), "new", "with one key set"),
    *_object("delete delDictValue", without_key, (2, 2), "part", "without a key"),
    *_object("clear clearDict", cleared, (1, 1), "checked", "without keys"),
)
