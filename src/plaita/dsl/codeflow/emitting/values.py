"""Values, expressions and conditions of a document to Python text."""

from __future__ import annotations

import json
import keyword
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final

from plaita.base.json import Json
from plaita.dsl.codeflow.errors import EmitError
from plaita.dsl.codeflow.expressions import Text
from plaita.dsl.codeflow.scopes import ROOTS
from plaita.engine.expression.errors import ExpressionSyntaxError
from plaita.engine.expression.parser import parse_expression
from plaita.engine.expression.syntax import (
    Access,
    Binary,
    Call,
    Conditional,
    ListOf,
    Literal,
    Node,
    Not,
    ObjectOf,
    Path,
    Step,
)

_IF, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _UNARY, _ATOM = 1, 2, 3, 4, 5, 6, 7, 8, 9
_POWERS: Final = {"or": _OR, "and": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}
_TESTS: Final = (_OR, _AND, _NOT, _COMPARE)
_SIGNS: Final = {"eq": "==", "ne": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "in": "in", "notIn": "not in"}
_TURNED: Final = {"contains": "in", "notContains": "not in"}
MEANT: Final = frozenset({*ROOTS, "F", "STATE", "len", "abs", "round", "str", "bool", "end", "ErrorHandler"})


def is_name(text: str) -> bool:
    """Can Python write the text as a name, and read it back as the same?"""
    return text.isidentifier() and not keyword.iskeyword(text) and unicodedata.normalize("NFKC", text) == text


def quoted(text: str) -> str:
    """A text as a Python literal."""
    return json.dumps(text, ensure_ascii=False)


def literal(value: Json) -> str:
    """A value as a Python literal that is not evaluated."""
    match value:
        case str():
            return quoted(value)
        case list():
            return f"[{', '.join(literal(item) for item in value)}]"
        case dict():
            return f"{{{', '.join(f'{quoted(str(k))}: {literal(v)}' for k, v in value.items())}}}"
    return repr(value)


class Values:
    """Writes values. ``short`` gives a name for a path, such as ``x`` for ``$NODE.x``: root and steps in, the name and
    how many steps it stands for out. ``roots`` are names of whole roots, as those of a round."""

    def __init__(
        self,
        short: Callable[[str, tuple[Step, ...]], tuple[str, int] | None],
        roots: Mapping[str, str] | None = None,
    ) -> None:
        self.short, self.roots = short, roots or {}

    def value(self, value: Json) -> Text:
        """The value of a field. Raises ``EmitError`` for text that is no expression."""
        match value:
            case str() if value.startswith("$"):
                return self._whole(value)
            case str():
                return Text(quoted(value))
            case list():
                return Text(f"[{', '.join(self.value(item).text for item in value)}]")
            case dict():
                return Text(f"{{{', '.join(f'{quoted(str(k))}: {self.value(v).text}' for k, v in value.items())}}}")
            case bool() | None:
                return Text(repr(value))
            case int() | float():
                return Text(repr(value), _UNARY if value < 0 else _ATOM)
        raise EmitError(f"{value!r} is no JSON", "")

    def _whole(self, text: str) -> Text:
        try:
            tree = parse_expression(text)
        except ExpressionSyntaxError as e:
            raise EmitError(f"{text[:80]!r} is no expression: {e.message}", "correct the flow first") from None
        found = self.expression(tree)
        # As a value of its own a text with a slot would be a template.
        if isinstance(tree, Literal | ListOf | ObjectOf) and "{%" in found.text:
            return Text(f"F.ifelse(True, {found.text}, None)")
        return found

    def expression(self, node: Node) -> Text:
        """A tree of the expression language."""
        match node:
            case Literal(value=value):
                negative = isinstance(value, int | float) and not isinstance(value, bool) and value < 0
                return Text(literal(value), _UNARY if negative else _ATOM)
            case Path(root=root, steps=steps):
                return Text(self._path(root, steps))
            case Access(base=base, steps=steps):
                inner = self.expression(base)
                text = f"({inner.text})" if isinstance(base, Literal) else inner.within(_ATOM)
                return Text(text + "".join(map(_step, steps)))
            case Call(name=name, arguments=arguments):
                function = f"F.{name}" if is_name(name) else f"F[{quoted(name)}]"
                return Text(f"{function}({', '.join(self.expression(a).text for a in arguments)})")
            case Not(operand=operand):
                return Text(f"not {self.expression(operand).within(_NOT)}", _NOT)
            case Binary():
                return self._binary(node)
            case Conditional(test=test, then=then, otherwise=otherwise):
                yes, asks = self.expression(then).within(_OR), self.expression(test).within(_OR)
                return Text(f"{yes} if {asks} else {self.expression(otherwise).within(_IF)}", _IF)
            case ListOf(items=items):
                return Text(f"[{', '.join(self.expression(i).text for i in items)}]")
            case ObjectOf(keys=keys, values=values):
                pairs = (f"{quoted(k)}: {self.expression(v).text}" for k, v in zip(keys, values, strict=True))
                return Text(f"{{{', '.join(pairs)}}}")
        raise AssertionError("every kind of tree is written")

    def _binary(self, node: Binary) -> Text:
        spine: list[Binary] = []
        leftmost: Node = node
        while isinstance(leftmost, Binary):
            spine.append(leftmost)
            leftmost = leftmost.left
        found = self.expression(leftmost)
        for each in reversed(spine):
            power = _POWERS.get(each.operator, _COMPARE)
            left = found.within(power + 1 if power == _COMPARE else power)
            is_null = isinstance(each.right, Literal) and each.right.value is None
            sign = {"==": "is", "!=": "is not"}.get(each.operator, each.operator) if is_null else each.operator
            found = Text(f"{left} {sign} {self.expression(each.right).within(power + 1)}", power)
        return found

    def _path(self, root: str, steps: tuple[Step, ...]) -> str:
        if root in self.roots:
            return self.roots[root] + "".join(map(_step, steps))
        named = self.short(root, steps)
        if named is not None:
            name, count = named
            return name + "".join(map(_step, steps[count:]))
        if root in ROOTS:
            return root + "".join(map(_step, steps))
        start = f"STATE.{root}" if is_name(root) else f"STATE[{quoted(root)}]"
        return start + "".join(map(_step, steps))

    def condition(self, document: Any) -> Text:
        """A condition as a test. Raises ``EmitError``."""
        if isinstance(document, str):
            document = json.loads(document)
        match document:
            case {"relation": "and" | "or" as relation, "conditions": [*members]} if members:
                power = _AND if relation == "and" else _OR
                if len(members) == 1:
                    return self.condition(members[0])
                return Text(f" {relation} ".join(self.condition(m).within(power + 1) for m in members), power)
            case {"field": field, "operator": "truthy"}:
                return self._truth(field)
            case {"field": field, "operator": "falsy"}:
                return Text(f"not {self._truth(field).within(_NOT)}", _NOT)
            case {"field": field, "operator": str() as operator, "value": value} if operator in _SIGNS:
                left, right = self.value(field).within(_SUM), self.value(value).within(_SUM)
                sign = {"eq": "is", "ne": "is not"}.get(operator, "") if value is None else ""
                return Text(f"{left} {sign or _SIGNS[operator]} {right}", _COMPARE)
            case {"field": field, "operator": str() as operator, "value": value} if operator in _TURNED:
                left, right = self.value(value).within(_SUM), self.value(field).within(_SUM)
                return Text(f"{left} {_TURNED[operator]} {right}", _COMPARE)
        raise EmitError(f"{json.dumps(document)[:80]} is no condition", "correct the flow first")

    def _truth(self, field: Json) -> Text:
        """The truth of a value. A value that looks like a test is marked: it is evaluated, not taken apart."""
        found = self.value(field)
        return Text(f"bool({found.text})") if found.power in _TESTS else found


def _step(step: Step) -> str:
    if step.place is not None and str(step.place) == step.key:
        return f"[{step.place}]"
    return f".{step.key}" if is_name(step.key) and not step.key.startswith("__") else f"[{quoted(step.key)}]"
