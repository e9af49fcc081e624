"""Flow text to a document: JSON or YAML, with every finding at its line and column.

Sound JSON is read by the standard library with hooks alone; positions are worked out when somebody asks for one.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Final, Literal, NoReturn

from plaita.base.errors import FlowLoadError
from plaita.base.issues import Issue
from plaita.base.json import Json
from plaita.base.limits import FLOW_DEPTH_MAX, FLOW_TEXT_MAX, INTEGER_DIGITS_MAX
from plaita.core.positions import (
    Position,
    Refusal,
    Steps,
    is_unicode,
    locate_json,
    nearest,
    path_of,
    refusal_of,
    steps_of,
)
from plaita.core.yaml_text import YamlRefused, locate_yaml, parse_yaml

Format = Literal["json", "yaml"]
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_HINTS: Final = {
    "Expecting ',' delimiter": "is a comma missing before this place?",
    "Expecting property name enclosed in double quotes": "keys stand in double quotes; no comma after the last one",
    "Expecting ':' delimiter": "a key is followed by a colon",
    "Expecting value": "is a value missing, or a comma too many?",
    "Unterminated string starting at": "the closing double quote is missing",
    "Extra data": "one text holds one document",
}


@dataclass(slots=True)
class Document:
    """A flow text that was read. ``value`` is the object in it, ``issues`` holds warnings about the text."""

    value: dict[str, Json]
    source: str
    format: Format
    text: str = field(repr=False)
    issues: tuple[Issue, ...] = ()
    _table: dict[Steps, Position] | None = field(default=None, repr=False)

    def locate(self, path: str) -> Position | None:
        """Line and column of the value at a JSON path (``$.nodes[2].next``), or of its nearest parent that exists.

        The first call reads the text a second time.
        """
        if self._table is None:
            self._table = locate_json(self.text) if self.format == "json" else locate_yaml(self.text)
        return nearest(self._table, steps_of(path))


class _Refused(Exception):
    """A hook met something a document may not hold; where it stands is found by the second pass."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


def read_document(text: str, source: str = "", *, format: Format | None = None) -> Document:
    """Read flow text. Without ``format`` it is JSON when it begins with ``{`` or ``[``, else YAML.

    Raises ``FlowLoadError`` with one issue that has line and column; nothing else, whatever the text. JSON with slips
    that YAML forgives (a comma too many, comments) is accepted with a warning when ``format`` is not given.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > FLOW_TEXT_MAX:
        _fail(source, "too_large", f"the text has {len(text)} characters; {FLOW_TEXT_MAX} are allowed", Position(1, 1))
    if not is_unicode(text):
        _fail(source, "not_unicode", "the text holds a lone surrogate, so it is not Unicode", Position(1, 1))
    if not text.strip():
        _fail(source, "not_an_object", "the text is empty", Position(1, 1))
    if format == "yaml" or (format is None and text.lstrip()[0] not in "{["):
        return _document(_read_yaml(text, source), source, "yaml", text)
    try:
        return _document(_read_json(text, source), source, "json", text)
    except json.JSONDecodeError as e:
        issue = _syntax_issue(e)
    if format == "json":
        raise FlowLoadError([issue], source)
    return _forgiven(text, source, issue)


def _document(value: Json, source: str, format: Format, text: str, issues: tuple[Issue, ...] = ()) -> Document:
    if not isinstance(value, dict):
        kind = {list: "a list", str: "text", type(None): "empty", bool: "true or false"}.get(type(value), "a number")
        _fail(source, "not_an_object", f"the document is {kind}; a flow is an object", Position(1, 1))
    return Document(value, source, format, text, issues)


def _forgiven(text: str, source: str, issue: Issue) -> Document:
    """The YAML reading of a text whose JSON has a slip; when there is none, the slip is the error."""
    try:
        value = parse_yaml(text)
    except YamlRefused as e:
        if e.refusal.code == "not_yaml":
            raise FlowLoadError([issue], source) from None
        _raise(source, e.refusal)
    message = f"not JSON, but it can be read as YAML: {issue.message}"
    warning = Issue("warning", "json_read_as_yaml", "$", message, issue.hint, line=issue.line, column=issue.column)
    return _document(value, source, "yaml", text, (warning,))


def _read_yaml(text: str, source: str) -> Json:
    try:
        return parse_yaml(text)
    except YamlRefused as e:
        _raise(source, e.refusal)


def _read_json(text: str, source: str) -> Json:
    """The value of a JSON text; raises ``JSONDecodeError`` for its syntax and ``FlowLoadError`` for its content."""
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_constant, parse_int=_integer, parse_float=_float
        )
        if text.count("{") + text.count("[") > FLOW_DEPTH_MAX and _depth(value) > FLOW_DEPTH_MAX:
            raise _Refused("too_deep", f"nested deeper than {FLOW_DEPTH_MAX}")
        if _SURROGATE.search(text) and (refusal := refusal_of(text, "not_unicode")):
            _raise(source, refusal)
    except _Refused as e:
        refusal = refusal_of(text, e.code) or Refusal(e.code, e.message, (), Position(1, 1))
        _raise(source, refusal)
    except RecursionError:
        refusal = refusal_of(text, "too_deep") or Refusal("too_deep", "nested too deeply", (), Position(1, 1))
        _raise(source, refusal)
    return value


def _depth(value: Json) -> int:
    """Containers inside each other, counted level by level."""
    level, depth = [value], 0
    while level:
        containers = [v for v in level if type(v) is list or type(v) is dict]
        level = [child for v in containers for child in (v.values() if type(v) is dict else v)]
        depth += bool(containers)
    return depth


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Refused("duplicate_key", "a key appears twice in one object")
    return value


def _constant(name: str) -> NoReturn:
    raise _Refused("not_a_number", f"{name} is not a JSON number")


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > INTEGER_DIGITS_MAX:
        raise _Refused("too_large", f"an integer may have at most {INTEGER_DIGITS_MAX} digits")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _Refused("not_a_number", f"{digits[:40]} is too large for a number")
    return value


def _syntax_issue(error: json.JSONDecodeError) -> Issue:
    return Issue(
        "error",
        "not_json",
        "$",
        f"not JSON: {error.msg}",
        _HINTS.get(error.msg, ""),
        line=error.lineno,
        column=error.colno,
    )


def _raise(source: str, refusal: Refusal) -> NoReturn:
    _fail(source, refusal.code, refusal.message, refusal.position, path_of(refusal.steps))


def _fail(source: str, code: str, message: str, where: Position, path: str = "$") -> NoReturn:
    raise FlowLoadError([Issue("error", code, path, message, line=where.line, column=where.column)], source) from None
