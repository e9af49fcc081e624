"""What a function may ask of its arguments; every refusal names the type it got."""

from __future__ import annotations

from plaita.base.json import Json
from plaita.engine.expression.arithmetic import refuse
from plaita.engine.values import NUMBERS


def text_of(value: Json) -> str:
    """The argument as text, or a refusal."""
    if type(value) is not str:
        refuse("text", value)
    return value


def list_of(value: Json) -> list[Json]:
    """The argument as a list, or a refusal."""
    if type(value) is not list:
        refuse("a list", value)
    return value


def object_of(value: Json) -> dict[str, Json]:
    """The argument as an object, or a refusal."""
    if type(value) is not dict:
        refuse("an object", value)
    return value


def key_of(value: Json) -> str:
    """The argument as a key of an object, or a refusal."""
    if type(value) is not str:
        refuse("a text as key", value)
    return value


def number_of(value: Json) -> int | float:
    """The argument as a number (a boolean is none), or a refusal."""
    if type(value) not in NUMBERS:
        refuse("a number", value)
    return value  # type: ignore[no-any-return]


def integer_of(value: Json) -> int:
    """The argument as an integer (neither a boolean nor 1.0), or a refusal."""
    if type(value) is not int:
        refuse("an integer", value)
    return value


def sequence_of(value: Json) -> list[Json] | str:
    """The argument as a list or text, or a refusal."""
    if type(value) is not list and type(value) is not str:
        refuse("a list or text", value)
    return value
