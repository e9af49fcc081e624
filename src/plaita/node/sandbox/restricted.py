"""The restricted backend inside the script's process: RestrictedPython's subset of the language, with own guards.

Names that begin with ``_`` and the attributes that lead to frames and code are refused wherever they can be written:
in the source (when it is compiled), in ``getattr`` and friends, and in the fields of ``str.format``. A module is a copy
of its listed names, because the modules of the standard library hold references to one another.
"""

from __future__ import annotations

import builtins
import string
from _string import formatter_field_name_split  # type: ignore[import-not-found]
from typing import Any

from RestrictedPython.compile import compile_restricted_exec
from RestrictedPython.Guards import guarded_iter_unpack_sequence, guarded_unpack_sequence, safe_builtins
from RestrictedPython.transformer import INSPECT_ATTRIBUTES

PUBLIC = ()
"""What a module itself calls public."""
MODULES: dict[str, tuple[str, ...]] = {
    "base64": PUBLIC,
    "bisect": ("bisect", "bisect_left", "bisect_right", "insort", "insort_left", "insort_right"),
    "calendar": ("isleap", "leapdays", "monthrange", "timegm", "weekday", "day_name", "month_name"),
    "collections": ("ChainMap", "Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone", "tzinfo", "MINYEAR", "MAXYEAR"),
    "decimal": PUBLIC,
    "fractions": ("Fraction",),
    "functools": ("cache", "cmp_to_key", "lru_cache", "partial", "reduce"),
    "hashlib": ("blake2b", "blake2s", "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "sha3_512"),
    "heapq": PUBLIC,
    "html": ("escape", "unescape"),
    "itertools": PUBLIC,
    "json": ("dumps", "loads", "JSONDecodeError"),
    "math": PUBLIC,
    "random": PUBLIC,
    "re": PUBLIC,
    "statistics": PUBLIC,
    "string": (
        "ascii_letters", "ascii_lowercase", "ascii_uppercase", "capwords", "digits", "hexdigits", "octdigits",
        "printable", "punctuation", "whitespace", "Template",
    ),
    "textwrap": PUBLIC,
    "unicodedata": PUBLIC,
    "uuid": ("NAMESPACE_DNS", "NAMESPACE_OID", "NAMESPACE_URL", "NAMESPACE_X500", "UUID", "uuid3", "uuid4", "uuid5"),
}  # fmt: skip
"""What may be imported."""
_MORE_BUILTINS = (
    "all", "any", "ascii", "bin", "bytes", "classmethod", "dict", "enumerate", "filter", "format", "frozenset", "iter",
    "list", "map", "max", "min", "next", "property", "reversed", "set", "sorted", "staticmethod", "sum", "tuple", "zip",
    "OSError", "RecursionError", "TimeoutError", "StopAsyncIteration", "NotImplemented",
)  # fmt: skip
_ABSENT = object()


class NotAllowed(TypeError):
    """The script asks for something that the restricted backend refuses."""


class ImportNotAllowed(ImportError, ValueError):
    """The script imports what it may not."""


def load(code: str, name: str, names: dict[str, Any], extra_modules: frozenset[str]) -> Any:
    """Compile and execute the script in ``names``; its ``run``. Raises ``NotAllowed`` naming what is refused."""
    compiled = compile_restricted_exec(code, name)
    if compiled.code is None:
        raise NotAllowed("; ".join(compiled.errors))
    names |= _guards(extra_modules)
    exec(compiled.code, names)  # nosec B102
    return names["run"]


def _guards(extra_modules: frozenset[str]) -> dict[str, Any]:
    return {
        "__builtins__": _builtins(extra_modules),
        "__name__": "script",
        "__metaclass__": type,
        "_getattr_": attribute,
        "_getitem_": lambda value, key: value[key],
        "_getiter_": iter,
        "_iter_unpack_sequence_": guarded_iter_unpack_sequence,
        "_unpack_sequence_": guarded_unpack_sequence,
        "_write_": lambda value: value,
        "_inplacevar_": _in_place,
        "_apply_": lambda function, *args, **kwargs: function(*args, **kwargs),
        "_print_": _Print,
    }


def _builtins(extra_modules: frozenset[str]) -> dict[str, Any]:
    found = {**safe_builtins, **{name: getattr(builtins, name) for name in _MORE_BUILTINS}}
    found |= {"getattr": attribute, "hasattr": _has, "setattr": _set, "delattr": _delete}
    found["__import__"] = _Importer(extra_modules)
    return found


def check_name(name: object) -> str:
    """The name of an attribute that may be touched. Raises ``NotAllowed``."""
    if type(name) is not str:
        raise NotAllowed("the name of an attribute is text")
    if name.startswith("_") or name in INSPECT_ATTRIBUTES:
        raise NotAllowed(f"attribute {name!r} is refused in a restricted script")
    return name


def attribute(value: Any, name: str, default: Any = _ABSENT) -> Any:
    """``value.name``. The format methods of a text are replaced: Python's own walk attributes unseen."""
    check_name(name)
    if name in ("format", "format_map"):
        if isinstance(value, str):
            return _formatting(value, name)
        if isinstance(value, type) and issubclass(value, str):
            raise NotAllowed(f"attribute {name!r} of {value.__name__!r} is refused; use it on a text")
    return getattr(value, name) if default is _ABSENT else getattr(value, name, default)


def _has(value: Any, name: str) -> bool:
    return attribute(value, name, _ABSENT) is not _ABSENT if hasattr(value, check_name(name)) else False


def _set(value: Any, name: str, item: Any) -> None:
    setattr(value, check_name(name), item)


def _delete(value: Any, name: str) -> None:
    delattr(value, check_name(name))


def _formatting(text: str, name: str) -> Any:
    if name == "format":
        return lambda *args, **kwargs: _Formatter().vformat(text, args, kwargs)
    return lambda mapping: _Formatter().vformat(text, (), mapping)


class _Formatter(string.Formatter):
    """``str.format`` whose fields reach only attributes that may be touched."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        first, rest = formatter_field_name_split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            value = attribute(value, key) if is_attribute else value[key]
        return value, first


def _in_place(operator: str, left: Any, right: Any) -> Any:
    match operator:
        case "+=":
            left += right
        case "-=":
            left -= right
        case "*=":
            left *= right
        case "/=":
            left /= right
        case "//=":
            left //= right
        case "%=":
            left %= right
        case "**=":
            left **= right
        case "|=":
            left |= right
        case "&=":
            left &= right
        case "^=":
            left ^= right
        case "<<=":
            left <<= right
        case ">>=":
            left >>= right
        case _:
            raise NotAllowed(f"{operator} is refused in a restricted script")
    return left


class _Print:
    """``print`` of a script: to its standard output, and nowhere else."""

    def __init__(self, getter: Any = None) -> None:
        pass

    def _call_print(self, *values: Any, **options: Any) -> None:
        options.pop("file", None)
        print(*values, **options)  # noqa: T201 - the script's own word


class _Importer:
    """``import`` of a script: copies of the listed modules."""

    def __init__(self, extra: frozenset[str]) -> None:
        self._extra = extra
        self._made: dict[str, Any] = {}

    def __call__(self, name: str, names: Any = None, local: Any = None, wanted: Any = (), level: int = 0) -> Any:
        if level or (name not in MODULES and name not in self._extra):
            allowed = ", ".join(sorted({*MODULES, *self._extra}))
            raise ImportNotAllowed(f"import of {name!r} is refused in a restricted script; allowed: {allowed}")
        if name not in self._made:
            self._made[name] = _copy(name, MODULES.get(name, PUBLIC))
        if "." not in name or wanted:
            return self._made[name]
        raise ImportNotAllowed(f"write: from {name} import …")


def _copy(name: str, listed: tuple[str, ...]) -> Any:
    """A module with the public names of another; modules among its values stay out."""
    module = builtins.__import__(name, fromlist=["*"])
    copy = type(string)(name)
    for key in listed or getattr(module, "__all__", None) or vars(module):
        value = getattr(module, key, _ABSENT)
        if value is not _ABSENT and not key.startswith("_") and not isinstance(value, type(string)):
            setattr(copy, key, value)
    return copy
