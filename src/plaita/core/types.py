"""Names of the documented types, their Python types, and checks of single values outside of a flow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from plaita.base.errors import InputError
from plaita.base.spelling import suggest
from plaita.engine import types

STRING: Final = "string"
BOOL: Final = "boolean"
INTEGER: Final = "integer"
FLOAT: Final = "float"
DECIMAL: Final = "decimal"
NUMBER: Final = "number"
ARRAY: Final = "array"
MAP: Final = "map"
OBJECT: Final = "object"
TYPE: Final = "type"
DATETIME: Final = "datetime"
DATE: Final = "date"
TIMESTAMP: Final = "timestamp"
NULL: Final = "null"
ANY: Final = "any"
OPTIONAL: Final = "optional"
UNION: Final = "union"
TYPE_NOT_SUPPORTED: Final = "type_not_supported"

native_types: dict[str, Any] = {
    STRING: str,
    BOOL: bool,
    INTEGER: int,
    FLOAT: float,
    DECIMAL: Decimal,
    NUMBER: (float, int, Decimal),
    ARRAY: (list, tuple, set),
    MAP: dict,
    OBJECT: dict,
    TYPE: str,
    DATETIME: dt.datetime,
    DATE: dt.date,
    TIMESTAMP: float,
    NULL: type(None),
}
"""Type or types of Python by the name of the type."""


class ValidationError(RuntimeError):
    """A value is not of its type, or a validator refused it."""


data_validators: dict[str, tuple[Callable[..., bool], str | None]] = {
    "required": (lambda value: value is not None, "a value is required"),
    "max_length": (lambda value, length: len(value) <= length, "may have at most {length} characters"),
    "min": (lambda value, min_value: value >= min_value, "must not be less than {min_value}"),
    "max": (lambda value, max_value: value <= max_value, "must not be more than {max_value}"),
}
"""Test and message of each validator; the message may name its parameters. ``register_validator`` adds to it."""


def register_validator(name: str, func: Callable[..., bool], message: str | None = None) -> None:
    """Add a validator: ``func(value, **parameters)`` answers whether the value is accepted."""
    data_validators[name] = (func, message)


def valid(data_type: str, value: Any, validators: Iterable[str | Mapping[str, Any]] | None = None) -> None:
    """Raises ``ValidationError`` when a value is not of the type or a validator refuses it.

    Validators are names or objects such as ``{"name": "max_length", "length": 20}``. An unknown type or validator is a
    ``ValueError``. Beside JSON the values of ``native_types`` are taken: a ``Decimal`` is a ``decimal``.
    """
    if not _fits(data_type, value):
        raise ValidationError(f"must be of type {data_type}, not {value!r:.100}")
    for entry in validators or ():
        given = dict(entry) if isinstance(entry, Mapping) else {"name": entry}
        _run(str(given.pop("name", "")), value, given)


def _fits(data_type: str, value: Any) -> bool:
    if data_type not in types.TYPE_NAMES:
        hint = suggest(data_type, types.TYPE_NAMES)
        raise ValueError(f"{data_type!r} is not a type{f'; {hint}' if hint else ''}")
    native = native_types.get(data_type, object)
    if isinstance(value, native) and not (isinstance(value, bool) and data_type not in (BOOL, ANY, OPTIONAL)):
        return True
    if value is None:
        return data_type in (ANY, OPTIONAL)
    try:
        types.conform(types.Property(data_type), value)
    except InputError:
        return False
    return True


def _run(name: str, value: Any, parameters: dict[str, Any]) -> None:
    if name not in data_validators:
        hint = suggest(name, data_validators) or f"validators: {', '.join(data_validators)}"
        raise ValueError(f"there is no validator {name!r}; {hint}")
    test, message = data_validators[name]
    if not test(value, **parameters):
        text = message.format(**parameters) if message else f"{value!r:.100} is refused by the validator {name!r}"
        raise ValidationError(text)


def get_native_type(data_type: str, str_value: bool = True) -> Any:
    """The Python type of a type (the first, where there are several), by default its name.

    Raises ``ValueError`` for a name that has none.
    """
    found = native_types.get(data_type)
    if found is None:
        hint = suggest(data_type, native_types) or f"types: {', '.join(native_types)}"
        raise ValueError(f"{data_type!r} has no Python type; {hint}")
    first = found[0] if isinstance(found, tuple) else found
    return first.__name__ if str_value else first
