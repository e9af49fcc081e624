"""The input of a flow as it stands on a command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from plaita.base.errors import InputError, NotFound
from plaita.base.json import Json, parse
from plaita.base.spelling import suggest
from plaita.cli.screen import note
from plaita.engine.types import Property, conform


def read_input(declared: Property | None, pairs: Sequence[str], source: str | None) -> dict[str, Json]:
    """The input: the document ``source`` (a file, or ``-``), and over it the ``key=value`` pairs.

    A value is JSON if it parses and fits its declared type, else text. Raises ``InputError`` and ``NotFound``.
    """
    value = {} if source is None else _document(source)
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign or not all(key.split(".")):
            raise InputError(f"-i {pair}", "is not KEY=VALUE; write for example -i amount=120")
        _put(value, key.split("."), _value(_declared(declared, key.split(".")), key, text), pair)
    return value


def note_undeclared(declared: Property | None, pairs: Sequence[str]) -> None:
    """Say which inputs of the command line a flow that declares its inputs does not declare: they may be misspelt."""
    strange: dict[str, str] = {}
    for pair in pairs:
        inside, steps = declared, pair.partition("=")[0].split(".")
        for at, step in enumerate(steps):
            names = dict((inside and inside.children) or ())
            if names and step not in names:
                strange[".".join(steps[: at + 1])] = suggest(step, names)
            inside = names.get(step)
    for key, near in strange.items():
        note(f"note: the flow declares no input {key!r}{f' ({near})' if near else ''}")


def inputs_in_words(declared: Property | None) -> str:
    """What a flow takes, as a hint: ``the flow takes amount (number, required), purpose (string)``."""
    children = (declared and declared.children) or ()
    words = [f"{name} ({p.data_type}{', required' if p.required else ''})" for name, p in children]
    return f"the flow takes {', '.join(words)}; -i KEY=VALUE" if words else ""


def read_json(text: str | None, option: str) -> Json:
    """The JSON of an option; ``None`` when it was not given."""
    try:
        return None if text is None else parse(text)
    except InputError as e:
        raise InputError(option, f"{e.reason}; text stands in double quotes inside the shell's quotes") from None


def _document(source: str) -> dict[str, Json]:
    text = sys.stdin.read() if source == "-" else _file(source, f"--input {source}")
    if source.endswith((".yaml", ".yml")):
        from plaita.core.text import read_document

        return read_document(text, source, format="yaml").value
    value = parse(text, f"--input {source}")
    if not isinstance(value, dict):
        raise InputError(f"--input {source}", "is not an object")
    return value


def _file(name: str, what: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as e:
        raise NotFound(f"{what}: {name}: {e.strerror or e}", "check the path") from None
    except UnicodeDecodeError:
        raise InputError(what, f"{name} is not UTF-8 text") from None


def _declared(declared: Property | None, steps: Sequence[str]) -> Property | None:
    for step in steps:
        declared = dict((declared and declared.children) or ()).get(step)
    return declared


def _value(declared: Property | None, key: str, text: str) -> Json:
    if text.startswith("@"):
        text = _file(text[1:], f"-i {key}=@…")
    try:
        value = parse(text)
        return value if declared is None else conform(declared, value)
    except InputError:
        return text


def _put(value: dict[str, Json], steps: Sequence[str], item: Json, pair: str) -> None:
    *outer, last = steps
    for step in outer:
        inner = value.setdefault(step, {})
        if not isinstance(inner, dict):
            raise InputError(f"-i {pair}", f"{step} is not an object")
        value = inner
    value[last] = item
