"""Functions of lists. None changes its argument: what the documentation calls a change is a new list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from plaita.base.json import Json
from plaita.engine.expression.arithmetic import check_room, refuse
from plaita.engine.expression.function import FunctionCategory, FunctionSpec
from plaita.engine.expression.functions.arguments import integer_of, key_of, list_of, sequence_of, text_of
from plaita.engine.values import NUMBERS, OperationError, json_equal, kind_of


def length(value: Json) -> int:
    """Characters of a text, elements of a list, keys of an object."""
    if type(value) not in (str, list, dict):
        refuse("a text, list or object", value)
    return len(value)


def _position(items: list[Json], value: Json) -> int:
    for i, item in enumerate(items):
        if json_equal(item, value):
            return i
    raise OperationError("did not find the value in the list; ask $F.contains first")


def index(items: Json, value: Json) -> int:
    """Where the value stands first; an error when it does not occur."""
    found = sequence_of(items)
    if isinstance(found, list):
        return _position(found, value)
    at = found.find(text_of(value))
    if at < 0:
        raise OperationError("did not find the text; ask $F.contains first")
    return at


def part(items: Json, start: Json, stop: Json) -> Json:
    """Elements or characters from ``start`` up to, not including, ``stop``; null means the end."""
    first = None if start is None else integer_of(start)
    last = None if stop is None else integer_of(stop)
    return sequence_of(items)[first:last]


def append(items: Json, value: Json) -> list[Json]:
    """The list with one more element."""
    found = list_of(items)
    check_room(len(found) + 1)
    return [*found, value]


def extend(items: Json, more: Json) -> list[Json]:
    """The list with the elements of another one."""
    found, others = list_of(items), list_of(more)
    check_room(len(found) + len(others))
    return found + others


def insert(items: Json, position: Json, value: Json) -> list[Json]:
    """The list with an element before ``position``."""
    found, at = list_of(items), integer_of(position)
    check_room(len(found) + 1)
    return [*found[:at], value, *found[at:]]


def remove(items: Json, value: Json) -> list[Json]:
    """The list without the first element equal to ``value``; an error when there is none."""
    found = list_of(items)
    at = _position(found, value)
    return found[:at] + found[at + 1 :]


def reverse(items: Json) -> Json:
    """The list or text backwards."""
    return sequence_of(items)[::-1]


def sort(items: Json, key: Json = None, descending: Json = None) -> list[Json]:
    """The list in order, by the value of a key when one is named. Equal elements keep their order."""
    found = list_of(items)
    if key is None:
        values = found
    else:
        name = key_of(key)
        for i, item in enumerate(found):
            if type(item) is not dict:
                raise OperationError(f"needs a list of objects to sort by {name!r}; item {i} is {kind_of(item)}")
        values = [item.get(name) for item in found]
    kinds = {type(value) for value in values}
    if not (kinds <= NUMBERS or kinds == {str}):
        words = " and ".join(sorted({kind_of(value) for value in values}))
        raise OperationError(f"needs numbers only or texts only, not {words}")
    order = sorted(range(len(found)), key=values.__getitem__, reverse=bool(descending))
    return [found[i] for i in order]


def item_at(items: Json, position: Json) -> Json:
    """The element at a position, counted from the end when negative; null when there is none."""
    found, at = sequence_of(items), integer_of(position)
    return found[at] if -len(found) <= at < len(found) else None


def _existing(items: list[Json], position: Json) -> int:
    at = integer_of(position)
    if not -len(items) <= at < len(items):
        raise OperationError(f"index {at} is out of range for a list of {len(items)}")
    return at % len(items)


def without(items: Json, position: Json) -> list[Json]:
    """The list without the element at a position."""
    found = list_of(items)
    at = _existing(found, position)
    return found[:at] + found[at + 1 :]


def with_item(items: Json, position: Json, value: Json) -> list[Json]:
    """The list with another element at a position."""
    found = list_of(items)
    at = _existing(found, position)
    return [*found[:at], value, *found[at + 1 :]]


def _array(
    names: str,
    call: Callable[..., Json],
    arity: tuple[int, int],
    yields: Literal["checked", "part", "new"],
    description: str,
) -> list[FunctionSpec]:
    return [
        FunctionSpec(name, call, FunctionCategory.ARRAY, *arity, yields=yields, description=description)
        for name in names.split()
    ]


FUNCTIONS: Final = (
    *_array("len length", length, (1, 1), "checked", "characters, elements or keys"),
    *_array("index", index, (2, 2), "checked", "where a value stands first"),
    *_array("slice", part, (3, 3), "part", "from a position up to another"),
    *_array("append addListItem", append, (2, 2), "new", "with one more element"),
    *_array("extend", extend, (2, 2), "new", "with the elements of another list"),
    *_array("insert insertListItem", insert, (3, 3), "new", "with an element before a position"),
    *_array("remove", remove, (2, 2), "part", "without the first equal element"),
    *_array("reverse", reverse, (1, 1), "part", "backwards"),
    *_array("sort", sort, (1, 3), "part", "in order, by a key, descending or not"),
    *_array("getListItem", item_at, (2, 2), "part", "element at a position, or null"),
    *_array("pop delListItem", without, (2, 2), "part", "without the element at a position"),
    *_array("setListItem", with_item, (3, 3), "new", "with another element at a position"),
)
