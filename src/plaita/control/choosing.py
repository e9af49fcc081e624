"""Choosing executions by an expression over their public shape."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from plaita.base.errors import FlowLoadError, InputError
from plaita.control.looking import list_executions
from plaita.control.shapes import Shape
from plaita.core.expression import EvaluationError, ExpressionEvaluator, ExpressionSyntaxError
from plaita.engine.expression.parser import parse_expression
from plaita.ports.backend import Backend

PAGE: Final = 200
FIELDS: Final = (
    "execution_id", "flow_id", "flow_version", "status", "output", "error", "waits", "start_time", "end_time",
    "business_key", "tags", "retry_at", "not_before", "blocked_reason", "parent_id",
)  # fmt: skip
"""What an expression may read, as ``$status`` and so on; what an execution does not have is null."""


class Choice:
    """An expression such as ``$status == "error" and $flow_id == "order"``. Raises ``InputError``."""

    def __init__(self, where: str) -> None:
        self.where = where
        # A field of a flow is an expression when it begins with $; this is one however it begins.
        self._value = f"$( {where} )"
        self._evaluator = ExpressionEvaluator()
        try:
            parse_expression(where)
            self._evaluator.prepared(self._value, self._context({}))
        except ExpressionSyntaxError as e:
            raise _refused(f"column {e.column}: {e.message}", e.hint.replace("$INPUT.", "$")) from None
        except FlowLoadError as e:
            raise _refused(e.issues[0].message, e.issues[0].hint) from None

    def takes(self, shape: Shape) -> bool:
        """Does an execution fit? Raises ``InputError`` when the expression fails for it."""
        try:
            return bool(self._evaluator.evaluate(self._value, self._context(shape)))
        except EvaluationError as e:
            said = EvaluationError(self.where, e.reason)
            raise InputError("where", f"{said} (for execution {shape['execution_id']})") from None

    def _context(self, shape: Shape) -> Shape:
        return {f"${name}": shape.get(name) for name in FIELDS}


def _refused(what: str, hint: str) -> InputError:
    fields = ", ".join(f"${name}" for name in FIELDS)
    return InputError("where", f"{what}{f' ({hint})' if hint else ''}; fields: {fields}")


async def chosen(store: Backend, choice: Choice, **filters: str) -> AsyncIterator[Shape]:
    """Executions that fit, newest first; ``filters`` are those of ``list_executions``."""
    cursor = ""
    while True:
        page = await list_executions(store, limit=PAGE, cursor=cursor, **filters)
        for shape in page["items"]:
            if choice.takes(shape):
                yield shape
        if page["next"] is None:
            return
        cursor = page["next"]


async def first_of(store: Backend, choice: Choice, count: int, **filters: str) -> list[Shape]:
    """The newest that fit, at most ``count``."""
    found: list[Shape] = []
    async for shape in chosen(store, choice, **filters):
        found.append(shape)
        if len(found) == count:
            break
    return found
