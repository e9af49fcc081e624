"""YAML to JSON values, from the event stream: iterative, bounded, with positions, without tags of any language.

What plain words mean is YAML 1.1 as PyYAML reads it (``yes``, ``on``, ``0x1f``), with two differences: dates and
times stay the text that was written, and whatever is a number in JSON is a number here (``1e3``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

import yaml
from yaml import events

from plaita.base.json import Json
from plaita.base.limits import FLOW_DEPTH_MAX, INTEGER_DIGITS_MAX, YAML_ALIASES_MAX
from plaita.core.positions import Lines, Position, Refusal, Steps

ALIAS_WEIGHT_MAX: Final = 10_000_000
"""What aliases may add to a document: characters of texts, and ``_VALUE_WEIGHT`` for every value."""
_VALUE_WEIGHT: Final = 16

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_TRUE: Final = ("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE: Final = ("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_TAGGED: Final[dict[str, type]] = {"null": type(None), "bool": bool, "int": int, "float": float}
_INTEGER: Final = re.compile(r"([-+]?)(?:0b([01_]+)|0x([0-9a-fA-F_]+)|0([0-7_]+)|(0|[1-9][0-9_]*))", re.ASCII)
_FLOAT: Final = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?|(?:0|[1-9]\d*)[eE][-+]?\d+)",
    re.ASCII,
)
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_MERGE: Final = object()


class YamlRefused(Exception):
    """The text is not a document; carries the finding."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


@dataclass(slots=True)
class _Node:
    """A finished value with what an alias to it costs: ``weight`` of all below it, ``height`` in containers."""

    value: Json
    weight: int = _VALUE_WEIGHT
    height: int = 0


@dataclass(slots=True)
class _Open:
    """A container being filled. ``key`` is set between a key and its value."""

    value: list[Json] | dict[str, Json]
    anchor: str | None
    node: _Node
    key: object = None
    has_key: bool = False
    merged: list[Json] = field(default_factory=list)


def parse_yaml(text: str) -> Json:
    """The one document of ``text``; raises ``YamlRefused``. Values behind aliases are shared: treat as immutable."""
    return _Reader(record=False).read(text)


def locate_yaml(text: str) -> dict[Steps, Position]:
    """The position of every value of a text that ``parse_yaml`` accepts."""
    reader = _Reader(record=True)
    reader.read(text)
    return reader.table


class _Reader:
    def __init__(self, record: bool) -> None:
        self.table: dict[Steps, Position] = {}
        self._record = record
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Node | None] = {}
        self._aliases = 0
        self._alias_weight = 0
        self._documents = 0
        self._root: Json = None

    def read(self, text: str) -> Json:
        event: events.Event | None = None
        try:
            for event in yaml.parse(text, Loader=_LOADER):
                self._take(event)
        except yaml.MarkedYAMLError as e:
            raise YamlRefused(_fault(text, e, self._steps())) from None
        except yaml.reader.ReaderError as e:
            raise YamlRefused(_reader_refusal(text, e)) from None
        return self._root

    def _take(self, event: events.Event) -> None:
        match event:
            case events.ScalarEvent():
                self._mark(event)
                value = self._scalar(event)
                weight = _VALUE_WEIGHT + (len(value) if isinstance(value, str) else 0)
                node = _Node(value, weight)
                self._anchor(event.anchor, node)
                self._place(node, event)
            case events.AliasEvent():
                self._mark(event)
                self._place(self._resolve(event), event)
            case events.SequenceStartEvent():
                self._open([], event, "seq")
            case events.MappingStartEvent():
                self._open({}, event, "map")
            case events.SequenceEndEvent() | events.MappingEndEvent():
                self._close(event)
            case events.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise self._refused("not_yaml", "more than one document in one text", event)

    def _open(self, value: list[Json] | dict[str, Json], event: events.CollectionStartEvent, kind: str) -> None:
        if event.tag not in (None, "!", _TAG + kind):
            raise self._refused("unknown_tag", f"the tag {str(event.tag)[:80]} is not supported", event)
        self._mark(event)
        if len(self._stack) >= FLOW_DEPTH_MAX:
            raise self._refused("too_deep", f"nested deeper than {FLOW_DEPTH_MAX}", event)
        if self._stack and isinstance(self._stack[-1].value, dict) and not self._stack[-1].has_key:
            raise self._refused("key_not_text", "a key is a list or an object; keys are text", event)
        if event.anchor:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(value, event.anchor, _Node(value, height=1)))

    def _close(self, event: events.Event) -> None:
        done = self._stack.pop()
        if isinstance(done.value, dict):
            # Keys written out win over merged ones, earlier merges over later ones.
            for other in done.merged:
                for key, value in other.items():
                    done.value.setdefault(key, value)
        self._anchor(done.anchor, done.node)
        self._place(done.node, event)

    def _place(self, node: _Node, event: events.Event) -> None:
        if not self._stack:
            self._root = node.value
            return
        top = self._stack[-1]
        top.node.weight += node.weight
        top.node.height = max(top.node.height, node.height + 1)
        if isinstance(top.value, list):
            top.value.append(node.value)
        elif not top.has_key:
            top.key, top.has_key = self._key(top.value, node.value, event), True
        else:
            if top.key is _MERGE:
                self._merge(top, node.value, event)
            else:
                top.value[str(top.key)] = node.value
            top.has_key = False

    def _key(self, target: dict[str, Json], key: object, event: events.Event) -> object:
        is_plain = isinstance(event, events.ScalarEvent) and not event.style
        if is_plain and key == "<<":
            return _MERGE
        if not isinstance(key, str):
            written = event.value if isinstance(event, events.ScalarEvent) else str(key)
            raise self._refused("key_not_text", f"the key {written} is not text; write '{written}' in quotes", event)
        if key in target:
            raise self._refused("duplicate_key", f"key {key!r} appears twice in one object", event, key)
        target[key] = None
        return key

    def _merge(self, top: _Open, value: Json, event: events.Event) -> None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self._refused("not_yaml", "<< merges objects only", event)
        top.merged.extend(sources)

    def _resolve(self, event: events.AliasEvent) -> _Node:
        self._aliases += 1
        if self._aliases > YAML_ALIASES_MAX:
            raise self._refused("too_large", f"more than {YAML_ALIASES_MAX} aliases", event)
        name = str(event.anchor)
        if name not in self._anchors:
            raise self._refused("not_yaml", f"the anchor &{name} is not defined before *{name}", event)
        node = self._anchors[name]
        if node is None:
            raise self._refused("not_yaml", f"*{name} stands inside &{name}: a value cannot contain itself", event)
        self._alias_weight += node.weight
        if self._alias_weight > ALIAS_WEIGHT_MAX:
            raise self._refused("too_large", "aliases repeat more than a document may hold", event)
        if len(self._stack) + node.height > FLOW_DEPTH_MAX:
            raise self._refused("too_deep", f"nested deeper than {FLOW_DEPTH_MAX}", event)
        return node

    def _anchor(self, anchor: str | None, node: _Node) -> None:
        if anchor:
            self._anchors[anchor] = node

    def _scalar(self, event: events.ScalarEvent) -> Json:
        tag, value = event.tag, event.value
        if tag is None:
            return self._plain(value, event) if event.implicit[0] else value
        if tag in ("!", _TAG + "str"):
            return value
        parsed = self._plain(value, event)
        expected = _TAGGED.get(tag.removeprefix(_TAG))
        if expected is None:
            raise self._refused("unknown_tag", f"the tag {tag} is not supported", event)
        if expected is float and type(parsed) is int and abs(parsed) < 2**1023:
            return float(parsed)
        if type(parsed) is not expected:
            raise self._refused("not_yaml", f"{value[:40]!r} does not fit the tag {tag}", event)
        return parsed

    def _plain(self, value: str, event: events.Event) -> Json:
        if value in _WORDS:
            return _WORDS[value]
        if value[0] not in "+-.0123456789":
            return value
        if match := _INTEGER.fullmatch(value):
            return self._integer(match, event)
        if _NOT_FINITE.fullmatch(value):
            raise self._refused("not_a_number", f"{value} is not a JSON number", event)
        if not _FLOAT.fullmatch(value):
            return value
        number = float(value.replace("_", ""))
        if number in (float("inf"), float("-inf")):
            raise self._refused("not_a_number", f"{value[:40]} is too large for a number", event)
        return number

    def _integer(self, match: re.Match[str], event: events.Event) -> Json:
        sign, binary, hexa, octal, decimal = (part and part.replace("_", "") for part in match.groups())
        digits = binary or hexa or octal or decimal
        if not digits:
            return match.string
        if len(digits) > INTEGER_DIGITS_MAX:
            raise self._refused("too_large", f"an integer may have at most {INTEGER_DIGITS_MAX} digits", event)
        number = int(digits, 2 if binary else 16 if hexa else 8 if octal else 10)
        return -number if sign == "-" else number

    def _steps(self) -> Steps:
        """The steps to the value that comes next."""
        steps: list[str | int] = []
        for depth, top in enumerate(self._stack):
            if isinstance(top.value, list):
                steps.append(len(top.value))
            elif top.has_key:
                steps.append("<<" if top.key is _MERGE else str(top.key))
            elif depth + 1 < len(self._stack):
                break
        return tuple(steps)

    def _mark(self, event: events.NodeEvent) -> None:
        if self._record and not (
            self._stack and isinstance(self._stack[-1].value, dict) and not self._stack[-1].has_key
        ):
            self.table[self._steps()] = _position(event)

    def _refused(self, code: str, message: str, event: events.Event, *below: str) -> YamlRefused:
        return YamlRefused(Refusal(code, message, (*self._steps(), *below), _position(event)))


def _position(event: events.Event) -> Position:
    mark = event.start_mark
    return Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)


def _fault(text: str, error: yaml.MarkedYAMLError, steps: Steps) -> Refusal:
    """What the parser stopped at; a mark behind the last line means the end of the text."""
    mark = error.problem_mark or error.context_mark
    end = Lines(text).at(len(text.rstrip()))
    where = min(Position(mark.line + 1, mark.column + 1), end) if mark else end
    if "nesting depth" in str(error.problem):
        # libyaml has a cap of its own, near ours.
        return Refusal("too_deep", f"nested deeper than {FLOW_DEPTH_MAX}", steps, where)
    words = ", ".join(str(part) for part in (error.context, error.problem) if part)
    if mark and text[mark.index : mark.index + 1] == "\t":
        words += "; a tab stands here, and YAML indents with blanks"
    return Refusal("not_yaml", f"not YAML: {words}", steps, where)


def _reader_refusal(text: str, error: yaml.reader.ReaderError) -> Refusal:
    found = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    where = Lines(text).at(found.start()) if found else Position(1, 1)
    named = f"the character {found.group()!r}" if found else str(error.reason)
    return Refusal("not_yaml", f"not YAML: {named} is not allowed", (), where)
