"""The two errors of the expression language: it does not parse, it does not evaluate."""

from __future__ import annotations

from plaita.base.errors import PlaitaError

_SHOWN = 200


class EvaluationError(PlaitaError, ValueError):
    """An expression failed while a flow ran. ``text`` is the expression, ``reason`` names operator and types."""

    reference = "PLT-E11"

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text, reason)
        self.text, self.reason = text, reason

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= _SHOWN else self.text[: _SHOWN - 1] + "…"
        return f"{shown}: {self.reason}"


class ExpressionSyntaxError(PlaitaError, ValueError):
    """A text does not follow the grammar. ``column`` is 1-based in that text; ``code`` names the finding."""

    reference = "PLT-E12"
    kind = "expression_error"

    def __init__(self, message: str, column: int, hint: str = "", code: str = "expression_syntax") -> None:
        super().__init__(message, column, hint, code)
        self.message, self.column, self.hint, self.code = message, column, hint, code

    def __str__(self) -> str:
        return f"column {self.column}: {self.message}" + (f" ({self.hint})" if self.hint else "")
