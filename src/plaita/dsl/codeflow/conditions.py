"""Tests of ``if``, ``while`` and guards to the conditions of nodes."""

from __future__ import annotations

import ast
from typing import Any, Final

from plaita.dsl.codeflow.errors import Refused
from plaita.dsl.codeflow.expressions import Expressions, compared, comparison

OPERATORS: Final = {
    "==": "eq", "!=": "ne", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte", "in": "in", "not in": "notIn",
}  # fmt: skip
_OPPOSITES: Final = {
    "eq": "ne", "ne": "eq", "lt": "gte", "lte": "gt", "gt": "lte", "gte": "lt", "in": "notIn", "notIn": "in",
}  # fmt: skip
DEPTH_MAX: Final = 60


def condition(node: ast.expr, write: Expressions, depth: int = 0) -> dict[str, Any]:
    """The condition that holds when the test does. Raises ``Refused``."""
    _check(node, depth)
    match node:
        case ast.BoolOp(op=op, values=values):
            return group("and" if isinstance(op, ast.And) else "or", [condition(v, write, depth + 1) for v in values])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return negated(operand, write, depth + 1)
        case ast.Compare():
            return group("and", [_comparison(*pair, write) for pair in compared(node)])
        case ast.Call(func=ast.Name(id="bool"), args=[only], keywords=[]):
            return {"field": write.value(only), "operator": "truthy", "value": True}
    return {"field": write.value(node), "operator": "truthy", "value": True}


def negated(node: ast.expr, write: Expressions, depth: int = 0) -> dict[str, Any]:
    """The condition that holds when the test does not. Raises ``Refused``.

    With a null on one side every comparison but ``==`` and ``!=`` fails, so the opposite one fails too: the null is
    asked for by name.
    """
    _check(node, depth)
    match node:
        case ast.BoolOp(op=op, values=values):
            return group("or" if isinstance(op, ast.And) else "and", [negated(v, write, depth + 1) for v in values])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return condition(operand, write, depth + 1)
        case ast.Compare():
            return group("or", [_opposite(*pair, write) for pair in compared(node)])
        case ast.Call(func=ast.Name(id="bool"), args=[only], keywords=[]):
            return {"field": write.value(only), "operator": "falsy", "value": True}
    return {"field": write.value(node), "operator": "falsy", "value": True}


def group(relation: str, members: list[dict[str, Any]]) -> dict[str, Any]:
    """Conditions as one."""
    return members[0] if len(members) == 1 else {"relation": relation, "conditions": members}


def _comparison(left: ast.expr, op: ast.cmpop, right: ast.expr, write: Expressions) -> dict[str, Any]:
    operator = OPERATORS[comparison(op, right)]
    return {"field": write.value(left), "operator": operator, "value": write.value(right)}


def _opposite(left: ast.expr, op: ast.cmpop, right: ast.expr, write: Expressions) -> dict[str, Any]:
    plain = _comparison(left, op, right, write)
    opposite = {**plain, "operator": _OPPOSITES[plain["operator"]]}
    if plain["operator"] in ("eq", "ne"):
        return opposite
    asked = [
        {"field": plain[side], "operator": "eq", "value": None}
        for side, part in (("field", left), ("value", right))
        if not _is_never_null(part)
    ]
    return group("or", [opposite, *asked])


def _is_never_null(part: ast.expr) -> bool:
    return isinstance(part, ast.List | ast.Tuple | ast.Dict) or (
        isinstance(part, ast.Constant) and part.value is not None
    )


def _check(node: ast.expr, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise Refused(node, f"the test is nested deeper than {DEPTH_MAX}", "assign parts of it to variables")
