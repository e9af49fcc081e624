"""Where a value stands in the text of a document: an iterative scanner for JSON, marks for YAML.

This is the second, slower pass. It runs when a finding needs a line, never to load a sound document.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Final, NamedTuple, TypeAlias

from plaita.base.json import step_of
from plaita.base.limits import FLOW_DEPTH_MAX, INTEGER_DIGITS_MAX

Steps: TypeAlias = tuple[str | int, ...]
"""A JSON path in pieces: ``$.nodes[2].next`` is ``("nodes", 2, "next")``."""


class Position(NamedTuple):
    """A place in a text, both numbers from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a value may not be in a document, and where."""

    code: str
    message: str
    steps: Steps
    position: Position


_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]|\['((?:\\.|[^'\\])*)'\]", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def steps_of(path: str) -> Steps:
    """The pieces of a JSON path, as far as it can be read; the inverse of ``path_of``."""
    steps: list[str | int] = []
    at = 1 if path.startswith("$") else 0
    while match := _STEP.match(path, at):
        name, index, quoted = match.groups()
        steps.append(int(index) if index else name if name is not None else _ESCAPED.sub(r"\1", quoted))
        at = match.end()
    return tuple(steps)


def path_of(steps: Steps) -> str:
    """A JSON path of pieces: ``$.nodes[2]['odd key']``."""
    path = "$"
    for step in steps:
        path = step_of(path, step)
    return path


def nearest(table: Mapping[Steps, Position], steps: Steps) -> Position | None:
    """The position of the value, or of its nearest ancestor that exists; ``None`` in an empty table."""
    for length in range(len(steps), -1, -1):
        if (position := table.get(steps[:length])) is not None:
            return position
    return None


class Lines:
    """From offsets in a text to lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(m.end() for m in re.finditer(r"\n|\r(?!\n)", text))]

    def at(self, offset: int) -> Position:
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)


@dataclass(slots=True)
class _Open:
    """A container whose end has not been seen. ``step`` is the key or index of the value being read."""

    is_list: bool
    step: str | int = 0
    keys: set[str] = field(default_factory=set)


class _Scan:
    """What one pass over a JSON text found out; ``stack`` holds the containers around the current value."""

    def __init__(self, text: str) -> None:
        self.lines = Lines(text)
        self.table: dict[Steps, Position] = {}
        self.refusal: Refusal | None = None
        self.deepest = (0, 0)
        self.stack: list[_Open] = []
        # The steps to the current value, kept beside the stack: building them from it would cost the depth each time.
        self.steps: Steps = ()

    def value(self, offset: int) -> None:
        self.table[self.steps] = self.lines.at(offset)

    def open(self, offset: int, is_list: bool) -> None:
        self.stack.append(_Open(is_list))
        self.steps = (*self.steps, 0)
        if len(self.stack) > self.deepest[0]:
            self.deepest = (len(self.stack), offset)
        if len(self.stack) > FLOW_DEPTH_MAX:
            self.refuse("too_deep", f"nested deeper than {FLOW_DEPTH_MAX}", offset)

    def close(self) -> None:
        self.stack.pop()
        self.steps = self.steps[:-1]

    def step(self, step: str | int) -> None:
        self.stack[-1].step = step
        self.steps = (*self.steps[:-1], step)

    def refuse(self, code: str, message: str, offset: int) -> None:
        if self.refusal is None:
            self.refusal = Refusal(code, message, self.steps, self.lines.at(offset))


_TOKEN: Final = re.compile(
    r'[ \t\n\r]*(?:(?P<mark>[{}\[\],:])|(?P<text>")|(?P<number>-?\d+(?P<fraction>(?:\.\d+)?(?:[eE][+-]?\d+)?))'
    r"|(?P<word>-?[A-Za-z]+))",
    re.ASCII,
)


def locate_json(text: str) -> dict[Steps, Position]:
    """The position of every value of a JSON text; of a text that is not JSON, those before the first fault."""
    return _scan(text).table


def refusal_of(text: str, code: str) -> Refusal | None:
    """The first thing in a JSON text that a document may not hold; ``too_deep`` answers the deepest place."""
    scan = _scan(text)
    if scan.refusal is None and code == "too_deep":
        scan.steps = ()
        scan.refuse(code, "nested too deeply", scan.deepest[1])
    return scan.refusal


def _scan(text: str) -> _Scan:
    """Read tokens until the end, the first refusal or the first fault of syntax. Never recursive."""
    scan = _Scan(text)
    at, wants_key = 0, False
    while scan.refusal is None and (token := _TOKEN.match(text, at)):
        at, start = token.end(), token.start(token.lastgroup or "mark")
        mark = token["mark"]
        if token["text"] is not None:
            try:
                content, at = scanstring(text, at, True)
            except ValueError:
                break
            if wants_key:
                _key(scan, content, start)
            else:
                _text(scan, content, start)
        elif token["number"] is not None or token["word"] is not None:
            _literal(scan, token, start)
        elif mark in "{[":
            scan.value(start)
            scan.open(start, mark == "[")
        elif not scan.stack:
            break
        elif mark in "}]":
            scan.close()
        elif mark == "," and scan.stack[-1].is_list:
            scan.step(int(scan.stack[-1].step) + 1)
        wants_key = bool(scan.stack) and not scan.stack[-1].is_list and mark in ("{", ",")
    return scan


def _key(scan: _Scan, key: str, offset: int) -> None:
    scan.step(key)
    if key in scan.stack[-1].keys:
        scan.refuse("duplicate_key", f"key {key!r} appears twice in one object", offset)
    scan.stack[-1].keys.add(key)
    _unicode(scan, key, offset)


def _text(scan: _Scan, content: str, offset: int) -> None:
    scan.value(offset)
    _unicode(scan, content, offset)


def _unicode(scan: _Scan, content: str, offset: int) -> None:
    if not is_unicode(content):
        scan.refuse("not_unicode", "text with a lone surrogate is not Unicode", offset)


def _literal(scan: _Scan, token: re.Match[str], offset: int) -> None:
    scan.value(offset)
    word, number = token["word"], token["number"]
    if word in ("NaN", "Infinity", "-Infinity"):
        scan.refuse("not_a_number", f"{word} is not a JSON number", offset)
    elif number is not None and not token["fraction"] and len(number.lstrip("-")) > INTEGER_DIGITS_MAX:
        scan.refuse("too_large", f"an integer may have at most {INTEGER_DIGITS_MAX} digits", offset)
    elif number is not None and token["fraction"] and float(number) in (float("inf"), float("-inf")):
        scan.refuse("not_a_number", f"{number[:40]} is too large for a number", offset)


def is_unicode(text: str) -> bool:
    """False when the text holds half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
