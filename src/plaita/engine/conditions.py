"""Conditions to closures: ``{field, operator, value}`` and groups of them.

A null operand has rules of its own here: only ``eq`` and ``ne`` can hold. Groups stop at the first member that
decides. Two further forms are understood: JSON text of either, and an expression (``$…``), which holds when truthy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from plaita.base.documents import as_written
from plaita.base.errors import InputError
from plaita.base.json import Json, parse, step_of
from plaita.base.limits import EXPRESSION_DEPTH_MAX
from plaita.base.spelling import suggest
from plaita.engine.expression.compiled import Built, Compiled, Notes, Run, Site, broken
from plaita.engine.expression.compiler import compile_part
from plaita.engine.expression.function import FunctionTable
from plaita.engine.expression.operators import compile_binary
from plaita.engine.expression.scope import Names, Scope
from plaita.engine.values import (
    OperationError,
    greater,
    greater_or_equal,
    is_member,
    kind_of,
    less,
    less_or_equal,
    render,
)

OPERATORS: Final = (
    "eq", "ne", "gt", "gte", "lt", "lte", "in", "notIn", "contains", "notContains", "truthy", "falsy",
)  # fmt: skip
_FORMS: Final = (
    'write {"field": …, "operator": "eq", "value": …}, a group {"relation": "and", "conditions": […]}, '
    "or an expression such as $INPUT.n > 1"
)
_SYMBOLS: Final = {"==": "eq", "=": "eq", "!=": "ne", "<>": "ne", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_COMPARISONS: Final[dict[str, Callable[[Json, Json], bool]]] = {
    "gt": greater,
    "gte": greater_or_equal,
    "lt": less,
    "lte": less_or_equal,
    "in": is_member,
    "notIn": lambda a, b: not is_member(a, b),
    "contains": lambda a, b: is_member(b, a),
    "notContains": lambda a, b: not is_member(b, a),
}


def compile_condition(raw: Json, names: Names, functions: FunctionTable) -> Compiled:
    """Compile a condition or a group; ``run`` answers a boolean.

    Nothing is raised: an incomplete condition, an unknown operator and an empty group are error findings whose codes
    begin with ``condition``.
    """
    notes = Notes(names)
    return notes.finish(_condition(raw, notes, functions, 0))


def _condition(raw: Json, notes: Notes, functions: FunctionTable, depth: int) -> Built:
    raw = as_written(raw)
    if isinstance(raw, str):
        return _condition_text(raw, notes, functions, depth)
    if not isinstance(raw, dict):
        return _refuse(notes, "condition_incomplete", f"a condition is an object, not {kind_of(raw)}", _FORMS)
    if "relation" in raw or "conditions" in raw:
        return _group(raw, notes, functions, depth)
    return _single(raw, notes, functions)


def _refuse(notes: Notes, code: str, message: str, hint: str = "") -> Built:
    notes.error(code, message, None, hint)
    return broken("the condition")


def _condition_text(raw: str, notes: Notes, functions: FunctionTable, depth: int) -> Built:
    if raw.startswith("$"):
        run = compile_part(raw, notes, functions).run
        return Built(lambda s: bool(run(s)))
    try:
        value = parse(raw)
    except InputError as e:
        message = f"the condition is neither an expression nor JSON: {e.reason}"
        return _refuse(notes, "condition_syntax", message, "an expression begins with $")
    if not isinstance(value, dict):
        return _refuse(notes, "condition_incomplete", f"a condition is an object, not {kind_of(value)}", _FORMS)
    return _condition(value, notes, functions, depth)


def _group(raw: dict[str, Json], notes: Notes, functions: FunctionTable, depth: int) -> Built:
    relation, members = raw.get("relation"), raw.get("conditions")
    if "relation" not in raw:
        return _refuse(notes, "condition_incomplete", "the group has no relation", _FORMS)
    if relation not in ("and", "or"):
        return _refuse(notes, "condition_incomplete", f"relation is 'and' or 'or', not {relation!r}", _FORMS)
    if not isinstance(members, list):
        what = "no conditions" if members is None else f"as conditions {kind_of(members)}, not a list"
        return _refuse(notes, "condition_incomplete", f"the group has {what}", _FORMS)
    if not members:
        return _refuse(notes, "condition_empty_group", "a group without conditions has no clear meaning")
    if depth == EXPRESSION_DEPTH_MAX:
        return _refuse(notes, "condition_too_deep", f"groups are nested deeper than {EXPRESSION_DEPTH_MAX}")
    here, found = notes.path, []
    for i, member in enumerate(members):
        notes.path = step_of(step_of(here, "conditions"), i)
        found.append(_condition(member, notes, functions, depth + 1).run)
    notes.path = here
    return Built(_all(found) if relation == "and" else _any(found))


def _all(members: list[Run]) -> Run:
    if len(members) == 2:
        first, second = members
        return lambda s: first(s) and second(s)
    return lambda s: all(member(s) for member in members)


def _any(members: list[Run]) -> Run:
    if len(members) == 2:
        first, second = members
        return lambda s: first(s) or second(s)
    return lambda s: any(member(s) for member in members)


def _single(raw: dict[str, Json], notes: Notes, functions: FunctionTable) -> Built:
    operator = raw.get("operator")
    missing = [key for key in ("field", "operator", "value") if key not in raw or (key == "operator" and not raw[key])]
    if operator in ("truthy", "falsy"):
        missing = [key for key in missing if key != "value"]
    if missing:
        return _refuse(notes, "condition_incomplete", f"the condition has no {' and no '.join(missing)}", _FORMS)
    if operator not in OPERATORS:
        hint = _SYMBOLS.get(operator, "") if isinstance(operator, str) else ""
        hint = f"write {hint}" if hint else suggest(str(operator), OPERATORS)
        return _refuse(notes, "condition_unknown_operator", f"{operator!r} is not an operator", hint)
    here = notes.path
    notes.path = here + ".field"
    left = compile_part(raw["field"], notes, functions)
    if operator in ("truthy", "falsy"):
        notes.path = here
        return Built(_truth(left.run, operator == "truthy"))
    notes.path = here + ".value"
    right = compile_part(raw["value"], notes, functions)
    notes.path = here
    site = Site(f"{_shown(raw['field'])} {operator} {_shown(raw['value'])}")
    if operator in ("eq", "ne"):
        return compile_binary("==" if operator == "eq" else "!=", operator, left, right, site)
    return Built(_compare(operator, left, right, site))


def _shown(value: Json) -> str:
    try:
        return render(value) if value is not None else "null"
    except OperationError:
        return "…"


def _truth(left: Run, wanted: bool) -> Run:
    return lambda s: bool(left(s)) is wanted


def _compare(operator: str, left: Built, right: Built, site: Site) -> Run:
    work, first, second = _COMPARISONS[operator], left.run, right.run

    def run(s: Scope) -> bool:
        a, b = first(s), second(s)
        if a is None or b is None:
            return False
        try:
            return work(a, b)
        except OperationError as e:
            raise site.failure(operator, e) from None

    return run
