"""The tree of an expression. ``at`` is the 0-based offset of a part in the text of its field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from plaita.base.json import Json


class Step(NamedTuple):
    """One step of a path: a key and, when the step can also count in a list, its place there."""

    key: str
    place: int | None = None


@dataclass(slots=True)
class Literal:
    """A constant."""

    at: int
    value: Json


@dataclass(slots=True)
class Path:
    """``$ROOT`` and the steps after it."""

    at: int
    root: str
    steps: tuple[Step, ...]


@dataclass(slots=True)
class Access:
    """Steps into the result of a call, a parenthesis or a literal container."""

    at: int
    base: Node
    steps: tuple[Step, ...]


@dataclass(slots=True)
class Call:
    """``$F.name(arguments)``."""

    at: int
    name: str
    arguments: list[Node]


@dataclass(slots=True)
class Not:
    """``not operand``."""

    at: int
    operand: Node


@dataclass(slots=True)
class Binary:
    """``left operator right``; the operator is spelled with single spaces (``not in``)."""

    at: int
    operator: str
    left: Node
    right: Node


@dataclass(slots=True)
class Conditional:
    """``then if test else otherwise``."""

    at: int
    test: Node
    then: Node
    otherwise: Node


@dataclass(slots=True)
class ListOf:
    """``[a, b]``."""

    at: int
    items: list[Node]


@dataclass(slots=True)
class ObjectOf:
    """``{"key": value}``; keys are constants."""

    at: int
    keys: list[str]
    values: list[Node]


Node: TypeAlias = Literal | Path | Access | Call | Not | Binary | Conditional | ListOf | ObjectOf


class Slot(NamedTuple):
    """One ``{% … %}`` of a template: its own text and its tree."""

    text: str
    node: Node
