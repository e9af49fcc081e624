"""What is wrong with a document: one value a finding."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

Severity = Literal["error", "warning"]
HINT_LONG = 120
"""Characters beyond which a hint is a list rather than a remedy."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One finding. ``path`` is a JSON path (``$.nodes[2].next``); ``line``/``column`` are 1-based, when there is text.

    ``code`` is stable and dotted-free (``dangling_next``); codes of expression findings begin with ``expression``.
    ``column`` of an expression finding without text counts inside the expression.
    """

    severity: Severity
    code: str
    path: str
    message: str
    hint: str = ""
    node_id: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        column = f", column {self.column}" if self.column else ""
        where = f"line {self.line}{column}: " if self.line is not None else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.severity}: {where}{self.path}: {self.message}{hint} [{self.code}]"


def with_long_hints_once(issues: Iterable[Issue]) -> Iterator[Issue]:
    """For people: a long hint, such as the list of all node types, stands at the first issue that has it."""
    said = set[str]()
    for issue in issues:
        yield replace(issue, hint="") if issue.hint in said else issue
        if len(issue.hint) > HINT_LONG:
            said.add(issue.hint)
