"""What is wrong with Python source that should be a flow, and with a flow that Python cannot say."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from plaita.base.errors import FlowLoadError, NotSupported
from plaita.base.issues import Issue


class CodeflowError(FlowLoadError):
    """Source that is no flow; ``issues`` have line and column. ``line`` is that of the first."""

    @property
    def line(self) -> int | None:
        """Line of the first problem, 1-based."""
        return self.issues[0].line if self.issues else None


class EmitError(NotSupported):
    """A flow that structured Python cannot say."""


class Refused(Exception):
    """One part of the source is outside the subset; the statement around it is given up."""

    def __init__(self, node: ast.AST, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.node, self.message, self.hint = node, message, hint


class Complaints:
    """Collects what is wrong with one source."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[Issue] = []

    def add(self, refused: Refused, lines: Sequence[str]) -> None:
        """Note a refusal; ``lines`` are those of the text its node stands in."""
        line = getattr(refused.node, "lineno", None)
        column = None
        if line is not None:
            before = lines[line - 1].encode()[: getattr(refused.node, "col_offset", 0)] if line <= len(lines) else b""
            column = len(before.decode(errors="replace")) + 1
        self.found.append(Issue("error", "codeflow", "$", refused.message, refused.hint, None, line, column))

    def raise_any(self) -> None:
        """Raises ``CodeflowError`` with everything, in the order of the text."""
        if self.found:
            unique = dict.fromkeys(self.found)
            raise CodeflowError(sorted(unique, key=lambda i: (i.line or 0, i.column or 0)), self.source)
