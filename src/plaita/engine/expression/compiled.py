"""What compiling a field yields: a function of the scope, what it reads, and what was found on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from plaita.base.json import Json
from plaita.engine.expression.errors import EvaluationError
from plaita.engine.expression.scope import Names, Scope
from plaita.engine.values import OperationError

Run: TypeAlias = Callable[[Scope], Json]
"""Evaluates in a scope; raises ``EvaluationError``."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to tell the author. ``path`` is a suffix inside the field's value (``""`` or ``.a[0]``).

    ``column`` is 1-based in that text. Codes of expressions begin with ``expression``.
    """

    severity: Literal["error", "warning"]
    code: str
    path: str
    message: str
    hint: str = ""
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """A field that is ready to run.

    ``constant``: ``run`` needs no scope. ``roots``: names of the roots it reads. ``nodes``: (depth in
    ``Names.declared``, id) of the nodes it reads, in order; an id declared nowhere has depth -1. ``relied`` are those
    of them that are read where there is no choice (``or``, ``if else``) that provides for null. After an error finding
    ``run`` raises.
    """

    run: Run
    constant: bool
    roots: frozenset[str]
    nodes: tuple[tuple[int, str], ...]
    relied: frozenset[tuple[int, str]]
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class Built:
    """A compiled part: ``value`` is what a constant one always gives.

    ``unchecked``: the result may be a new container that nothing has walked yet.
    """

    run: Run
    constant: bool = False
    unchecked: bool = False
    value: Json = None


def constant_of(value: Json) -> Built:
    """A part that is always ``value``."""
    return Built(lambda _: value, True, False, value)


@dataclass(slots=True)
class Notes:
    """What the compiler gathers about one field; ``path`` is where in the field's value it is."""

    names: Names
    findings: list[Finding] = field(default_factory=list)
    roots: set[str] = field(default_factory=set)
    nodes: dict[tuple[int, str], None] = field(default_factory=dict)
    relied: set[tuple[int, str]] = field(default_factory=set)
    chooses: bool = False
    path: str = ""

    def error(self, code: str, message: str, at: int | None = None, hint: str = "") -> None:
        """Note an error at a 0-based offset of the text."""
        self.findings.append(Finding("error", code, self.path, message, hint, None if at is None else at + 1))

    def warn(self, code: str, message: str, at: int | None = None, hint: str = "") -> None:
        """Note a warning at a 0-based offset of the text."""
        self.findings.append(Finding("warning", code, self.path, message, hint, None if at is None else at + 1))

    def finish(self, built: Built) -> Compiled:
        """Everything gathered, with the part that came of it."""
        roots = frozenset(self.roots) if self.roots else _NONE
        relied = frozenset(self.relied) if self.relied else _NONE
        return Compiled(built.run, built.constant, roots, tuple(self.nodes), relied, tuple(self.findings))


_NONE: Final[frozenset[Any]] = frozenset()


@dataclass(frozen=True, slots=True)
class Site:
    """The text that an error at run time names."""

    text: str

    def failure(self, label: str, error: OperationError) -> EvaluationError:
        """The public error for a refused operation; ``label`` is the operator or function."""
        return EvaluationError(self.text, f"{label} {error.reason}")


def broken(text: str) -> Built:
    """A part of a field that does not load."""

    def run(_: Scope) -> Json:
        raise EvaluationError(text, "this expression did not load")

    return Built(run)
