"""Declared types: one parser and one validator for every place that has a property object.

All documented spellings are understood at every level. Nothing is coerced: a value fits or is refused with its path.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from plaita.base.documents import as_written
from plaita.base.errors import InputError
from plaita.base.json import Json, parse, step_of
from plaita.base.limits import DEPTH_MAX
from plaita.base.spelling import suggest
from plaita.engine.expression.scope import ABSENT, Absent
from plaita.engine.values import NUMBERS, json_equal, kind_of

TYPE_NAMES: Final = (
    "string", "integer", "float", "number", "decimal", "boolean", "array", "object", "map",
    "date", "datetime", "timestamp", "null", "optional", "any", "type",
)  # fmt: skip
"""Every documented type name."""

_TYPE = ("data_type", "dataType", "type")
_LABEL = ("label", "title")
_DESCRIPTION = ("description", "desc")
_REQUIRED = ("is_required", "isRequired", "required")
_DEFAULT = ("default_value", "defaultValue", "default")
_CHILDREN = ("children", "properties")
_ITEM = ("item_type", "itemType", "items")
PROPERTY_KEYS: Final = frozenset(("name", *_TYPE, *_LABEL, *_DESCRIPTION, *_REQUIRED, *_DEFAULT, *_CHILDREN, *_ITEM))
"""Every key of a property object, in every spelling."""


@dataclass(frozen=True, slots=True)
class Property:
    """A declared type. ``default`` is ``ABSENT`` when there is none.

    ``children`` are the declared keys of an object; ``items`` is the type of every element of an array,
    ``positions`` the types of an array of fixed length. ``None`` means not declared: anything goes.
    """

    data_type: str
    name: str | None = None
    label: str | None = None
    description: str | None = None
    required: bool = False
    default: Json | Absent = ABSENT
    children: tuple[tuple[str, Property], ...] | None = None
    items: Property | None = None
    positions: tuple[Property, ...] | None = None


def parse_property(raw: Json, path: str = "$") -> Property:
    """Read a property object, or the JSON text of one; raises ``InputError`` with the path inside it."""
    return _parse(raw, path, 0)


def _parse(raw: Json, path: str, depth: int) -> Property:
    raw = as_written(raw)
    if isinstance(raw, str):
        if not raw.lstrip().startswith("{"):
            raise InputError(path, f'a type is an object such as {{"type": "string"}}, not the text {raw!r}')
        raw = parse(raw, path)
    if not isinstance(raw, dict):
        raise InputError(path, f'a type is an object such as {{"type": "string"}}, not {kind_of(raw)}')
    if depth > DEPTH_MAX:
        raise InputError(path, f"types are nested deeper than {DEPTH_MAX}")
    data_type = _type_name(raw, path)
    required, names = _required(raw, path)
    declared = Property(
        data_type,
        name=_text(raw, ("name",), path),
        label=_text(raw, _LABEL, path),
        description=_text(raw, _DESCRIPTION, path),
        required=required,
    )
    if data_type in ("object", "map"):
        declared = replace(declared, children=_children(raw, names, path, depth))
    elif names:
        raise InputError(step_of(path, "required"), f"a list of names belongs to an object, not to {data_type}")
    if data_type == "array":
        declared = _with_elements(declared, raw, path, depth)
    default = _one(raw, _DEFAULT, path)
    if default is ABSENT or default is None:
        return declared
    return replace(declared, default=conform(declared, default, step_of(path, "default")))


def _one(raw: dict[str, Json], spellings: tuple[str, ...], path: str) -> Json | Absent:
    """The value under any spelling; two that differ are refused."""
    found = [(key, raw[key]) for key in spellings if key in raw]
    for key, value in found[1:]:
        if not json_equal(value, found[0][1]):
            raise InputError(step_of(path, key), f"says something else than {found[0][0]!r}")
    return found[0][1] if found else ABSENT


def _text(raw: dict[str, Json], spellings: tuple[str, ...], path: str) -> str | None:
    value = _one(raw, spellings, path)
    if value is ABSENT or value is None:
        return None
    if not isinstance(value, str):
        raise InputError(step_of(path, spellings[0]), f"must be text, not {kind_of(value)}")
    return value


def _type_name(raw: dict[str, Json], path: str) -> str:
    name = _text(raw, _TYPE, path)
    if name is None:
        raise InputError(path, 'names no type; add "type"')
    if name not in TYPE_NAMES:
        hint = suggest(name, TYPE_NAMES)
        key = next(key for key in _TYPE if key in raw)
        raise InputError(step_of(path, key), f"{name!r} is not a type" + (f"; {hint}" if hint else ""))
    return name


def _required(raw: dict[str, Json], path: str) -> tuple[bool, tuple[str, ...]]:
    """Whether the value itself is required, and the names that ``required: [names]`` lists."""
    flags, names = [], ()
    for key in _REQUIRED:
        value = raw.get(key)
        if isinstance(value, list) and key == "required":
            if not all(isinstance(name, str) for name in value):
                raise InputError(step_of(path, key), "lists names")
            names = tuple(value)
        elif isinstance(value, bool):
            flags.append(value)
        elif value is not None:
            raise InputError(step_of(path, key), f"must be true or false, not {kind_of(value)}")
    if len(set(flags)) > 1:
        raise InputError(path, "is said to be required and not required")
    return True in flags, names


def _children(
    raw: dict[str, Json], names: tuple[str, ...], path: str, depth: int
) -> tuple[tuple[str, Property], ...] | None:
    members = _one(raw, _CHILDREN, path)
    key = next((key for key in _CHILDREN if key in raw), "children")
    if members is ABSENT or members is None:
        members = {}
    found: dict[str, Property] = {}
    if isinstance(members, dict):
        for name, member in members.items():
            child = _parse(member, step_of(step_of(path, key), name), depth + 1)
            found[name] = child if child.name else replace(child, name=name)
    elif isinstance(members, list):
        for i, member in enumerate(members):
            child = _parse(member, step_of(step_of(path, key), i), depth + 1)
            if not child.name or child.name in found:
                raise InputError(step_of(step_of(path, key), i), "needs a name of its own")
            found[child.name] = child
    else:
        raise InputError(step_of(path, key), f"must be an object of types, not {kind_of(members)}")
    for name in names:
        found[name] = replace(found.get(name) or Property("any", name=name), required=True)
    return tuple(found.items()) or None


def _with_elements(declared: Property, raw: dict[str, Json], path: str, depth: int) -> Property:
    items, members = _one(raw, _ITEM, path), _one(raw, _CHILDREN, path)
    key = next((key for key in (*_ITEM, *_CHILDREN) if raw.get(key) is not None), "items")
    if isinstance(items, list):
        items, members = ABSENT, items
    if items is not ABSENT and items is not None:
        return replace(declared, items=_parse(items, step_of(path, key), depth + 1))
    if members is ABSENT or members is None or members == {}:
        return declared
    if not isinstance(members, list):
        raise InputError(step_of(path, key), f"must be a list of types, not {kind_of(members)}")
    at = step_of(path, key)
    positions = tuple(_parse(m, step_of(at, i), depth + 1) for i, m in enumerate(members))
    return replace(declared, positions=positions or None)


def conform(prop: Property, value: Json, path: str = "$") -> Json:
    """Return ``value`` with defaults filled in; raises ``InputError`` where it does not fit.

    At the top null counts as absent; inside an object a key that is present with null stays null. The value is
    shared, not copied, as far as nothing was filled in.
    """
    if value is None:
        if prop.default is not ABSENT:
            return prop.default
        return _null(prop, path)
    return _conform(prop, value, path)


def _null(prop: Property, path: str) -> None:
    if prop.required and prop.data_type != "null":
        raise InputError(path, f"is required ({prop.data_type})")


def _conform(prop: Property, value: Json, path: str) -> Json:
    check = _CHECKS.get(prop.data_type)
    if check is not None and not check(value):
        raise InputError(path, f"must be {_WORDS.get(prop.data_type, prop.data_type)}, not {_seen(value)}")
    if type(value) is dict and prop.children is not None:
        return _conform_object(prop.children, value, path)
    if type(value) is list and (prop.items is not None or prop.positions is not None):
        return _conform_list(prop, value, path)
    return value


def _conform_object(children: tuple[tuple[str, Property], ...], value: dict[str, Json], path: str) -> Json:
    out = value
    for name, child in children:
        at = step_of(path, name)
        member = value.get(name)
        if member is not None:
            fitted = _conform(child, member, at)
        elif name not in value and child.default is not ABSENT:
            fitted = child.default
        else:
            _null(child, at)
            continue
        if fitted is not member:
            out = dict(value) if out is value else out
            out[name] = fitted
    return out


def _conform_list(prop: Property, value: list[Json], path: str) -> Json:
    if prop.positions is not None:
        if len(value) != len(prop.positions):
            raise InputError(path, f"must have {len(prop.positions)} elements, not {len(value)}")
        types: list[Property] = list(prop.positions)
    else:
        assert prop.items is not None, "one of the two is declared"
        types = [prop.items] * len(value)
    out = [conform(each, v, step_of(path, i)) for i, (each, v) in enumerate(zip(types, value, strict=True))]
    return value if all(a is b for a, b in zip(out, value, strict=True)) else out


def _seen(value: Json) -> str:
    return f"the text {value[:40]!r}" if isinstance(value, str) else kind_of(value)


def _reads(read: Callable[[str], object]) -> Callable[[Json], bool]:
    def check(value: Json) -> bool:
        if type(value) is not str:
            return False
        try:
            read(value)
        except ValueError:
            return False
        return True

    return check


_is_datetime = _reads(dt.datetime.fromisoformat)
_CHECKS: Final[dict[str, Callable[[Json], bool]]] = {
    "string": lambda v: type(v) is str,
    "integer": lambda v: type(v) is int,
    "float": lambda v: type(v) in NUMBERS,
    "number": lambda v: type(v) in NUMBERS,
    "decimal": lambda v: type(v) in NUMBERS,
    "boolean": lambda v: type(v) is bool,
    "array": lambda v: type(v) is list,
    "object": lambda v: type(v) is dict,
    "map": lambda v: type(v) is dict,
    "date": _reads(dt.date.fromisoformat),
    "datetime": _is_datetime,
    "timestamp": lambda v: type(v) in NUMBERS or _is_datetime(v),
    "null": lambda v: v is None,
    "type": lambda v: type(v) is str,
}
_WORDS: Final = {
    "string": "text", "integer": "an integer", "float": "a number", "number": "a number", "decimal": "a number",
    "boolean": "true or false", "array": "a list", "object": "an object", "map": "an object",
    "date": "an ISO date", "datetime": "an ISO date and time", "timestamp": "a number or an ISO date and time",
    "type": "the name of a type",
}  # fmt: skip
