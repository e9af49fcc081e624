"""Python expressions to the values of fields: literals, paths, calls of ``F``, operators."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from plaita.base.json import Json
from plaita.base.spelling import suggest
from plaita.dsl.codeflow.errors import Refused
from plaita.dsl.codeflow.naming import text_of
from plaita.dsl.codeflow.scopes import ROOTS, Level
from plaita.engine.expression import get_default_expression_registry

DEPTH_MAX: Final = 80
"""Expressions inside each other; operators in a row count once."""
_IF, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _ATOM = 1, 2, 3, 4, 5, 6, 7, 9
_OPERATORS: Final[dict[type[ast.operator], tuple[str, int]]] = {
    ast.Add: ("+", _SUM),
    ast.Sub: ("-", _SUM),
    ast.Mult: ("*", _PRODUCT),
    ast.Div: ("/", _PRODUCT),
    ast.Mod: ("%", _PRODUCT),
}
COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "==",
    ast.IsNot: "!=",
}
_BUILT_IN: Final = {"len": "len", "abs": "abs", "round": "round", "str": "concat"}
_CALLED: Final = "functions are F.name(…), a child flow is CHILD(name, input={…})"
_NO_PLACE: Final[dict[type[ast.AST], tuple[str, str]]] = {
    ast.Lambda: ("a lambda", "the body of the function is the flow; give the part a node of its own"),
    ast.ListComp: ("a list comprehension", "for item in MAP(…, id='name'): return …"),
    ast.SetComp: ("a comprehension", "for item in MAP(…, id='name'): return …"),
    ast.DictComp: ("a comprehension", "for item in REDUCE(…, id='name'): return …"),
    ast.GeneratorExp: ("a generator", "for item in MAP(…, id='name'): return …"),
    ast.NamedExpr: ("an assignment inside an expression", "assign in a statement of its own"),
    ast.Await: ("await", "nodes wait by themselves"),
    ast.Yield: ("yield", "a flow ends once, with return"),
    ast.YieldFrom: ("yield", "a flow ends once, with return"),
    ast.Set: ("a set", "JSON has lists: [a, b]"),
    ast.Starred: ("unpacking with *", "F.extend(a, b)"),
}


class Text(NamedTuple):
    """The text of an expression and how tightly its outermost operator binds."""

    text: str
    power: int = _ATOM

    def within(self, power: int) -> str:
        """The text as an operand of an operator that binds so tightly."""
        return self.text if self.power >= power else f"({self.text})"


class Expressions:
    """Writes expressions of one level; ``names`` mean something besides what the level knows."""

    def __init__(self, level: Level, names: Mapping[str, str] | None = None) -> None:
        self.level, self.names, self.depth = level, names or {}, 0

    def value(self, node: ast.expr) -> Json:
        """The value of a field. Raises ``Refused``."""
        match node:
            case ast.Constant(value=str(text)):
                _check_text(node, text)
                return f"$({quoted(text)})" if text.startswith("$") else text
            case ast.Constant():
                return _scalar(node, node.value)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.value(item) for item in items]
            case ast.Dict():
                return {key: self.value(value) for key, value in _members(node)}
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                if not isinstance(number, bool):
                    return -number
            case ast.JoinedStr():
                return self._template(node)
            case ast.Name(id=name) if self._is_constant(name):
                value: Json = self.level.constants[name]
                return f"$({quoted(value)})" if isinstance(value, str) and value.startswith("$") else value
        text = self.write(node).text
        return text if text.startswith("$") else f"$({text})"

    def write(self, node: ast.expr) -> Text:
        """The text of an expression. Raises ``Refused``."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise Refused(node, "the expression is nested too deeply", "assign parts of it to variables")
        try:
            return self._written(node)
        finally:
            self.depth -= 1

    def _written(self, node: ast.expr) -> Text:
        match node:
            case ast.Constant(value=value):
                found = Text(literal(node, value))
            case ast.Name():
                found = Text(self._name(node))
            case ast.Attribute() | ast.Subscript():
                found = self._step(node)
            case ast.Call():
                found = self._call(node)
            case ast.BinOp():
                found = self._binary(node)
            case ast.UnaryOp():
                found = self._unary(node)
            case ast.Compare():
                found = self._compare(node)
            case ast.BoolOp(op=op, values=values):
                word, power = (" and ", _AND) if isinstance(op, ast.And) else (" or ", _OR)
                found = Text(word.join(self.write(v).within(power + 1) for v in values), power)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                parts = self.write(body).within(_OR), self.write(test).within(_OR), self.write(orelse).within(_IF)
                found = Text("{} if {} else {}".format(*parts), _IF)
            case ast.List(elts=items) | ast.Tuple(elts=items):
                found = Text(f"[{', '.join(self.write(item).text for item in items)}]")
            case ast.Dict():
                members = (f"{quoted(key)}: {self.write(value).text}" for key, value in _members(node))
                found = Text(f"{{{', '.join(members)}}}")
            case ast.JoinedStr():
                found = Text(f"$F.concat({', '.join(self._pieces(node)) or quoted('')})")
            case _:
                what, hint = _NO_PLACE.get(type(node), (type(node).__name__, ""))
                raise Refused(node, f"{what} cannot be part of a flow", hint)
        return found

    def _is_constant(self, name: str) -> bool:
        return name not in self.names and self.level.path_of(name) is None and name in self.level.constants

    def _name(self, node: ast.Name) -> str:
        name = node.id
        found = self.names.get(name)
        if found is not None:
            return f"${found}"
        if name in ROOTS:
            return f"${name}"
        path = self.level.path_of(name)
        if path is not None:
            return path
        if name in self.level.constants:
            return literal(node, self.level.constants[name])
        line = self.level.assigned.get(name)
        if line is not None:
            hint = f"NODE.{name} reads it, null when that way was not taken; or use a if test else b"
            raise Refused(node, f"{name!r} is assigned in line {line}, but not on every way that leads here", hint)
        if name in ("STATE", "F"):
            raise Refused(node, f"{name} alone is no value", f"{name}.something")
        hint = suggest(name, self.level.known()) or f"the input is INPUT.{name}"
        raise Refused(node, f"unknown name {name!r}", hint)

    def _step(self, node: ast.Attribute | ast.Subscript) -> Text:
        if isinstance(node.value, ast.Name) and node.value.id == "STATE" and self.level.path_of("STATE") is None:
            root = node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)
            if isinstance(root, str):
                return Text(f"${root}")
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return self._slice(node.value, node.slice)
        base = self.write(node.value).within(_ATOM)
        if isinstance(node.value, ast.Constant | ast.UnaryOp):
            base = f"({base})"
        if isinstance(node, ast.Attribute):
            if node.attr.startswith("__"):
                raise Refused(node, f"{node.attr!r} cannot be read")
            return Text(f"{base}.{node.attr}")
        return Text(f"{base}[{_key(node.slice)}]")

    def _slice(self, base: ast.expr, part: ast.Slice) -> Text:
        if part.step is not None:
            raise Refused(part, "a slice has no step", "F.slice(list, from, to)")
        ends = ["0" if part.lower is None else self.write(part.lower).text]
        ends.append("null" if part.upper is None else self.write(part.upper).text)
        return Text(f"$F.slice({self.write(base).text}, {', '.join(ends)})")

    def _call(self, node: ast.Call) -> Text:
        match node.func:
            case ast.Attribute(value=ast.Name(id="F"), attr=name):
                return self._function(name, node)
            case ast.Subscript(value=ast.Name(id="F"), slice=ast.Constant(value=str(name))):
                return self._function(name, node)
            case ast.Name(id=name) if name in _BUILT_IN:
                return self._function(_BUILT_IN[name], node)
            case ast.Name(id="bool") if len(node.args) == 1:
                return Text(f"$F.ifelse({self.write(node.args[0]).text}, true, false)")
            case ast.Attribute(attr=name):
                known = name in get_default_expression_registry().table()
                hint = f"F.{name}({text_of(node.func.value)}, …)" if known else "functions are F.name(…)"
                raise Refused(node, f"a value has no method {name!r}", hint)
            case ast.Name(id=name) if name.isupper():
                raise Refused(node, f"{name}(…) is a node and no value", f"assign it first: x = {name}(…)")
            case ast.Name(id=name):
                hint = f"F.{name}(…)" if name in get_default_expression_registry().table() else ""
                raise Refused(node, f"there is no function {name!r}", hint or _CALLED)
        raise Refused(node, "only F.name(…) can be called", "")

    def _function(self, name: str, node: ast.Call) -> Text:
        if node.keywords:
            raise Refused(node.keywords[0], f"F.{name} takes no keywords", "write the arguments in their order")
        return Text(f"$F.{name}({', '.join(self.write(a).text for a in node.args)})")

    def _binary(self, node: ast.BinOp) -> Text:
        if type(node.op) in _OPERATORS:
            return self._chain(node)
        if isinstance(node.op, ast.Pow):
            return Text(f"$F.pow({self.write(node.left).text}, {self.write(node.right).text})")
        if isinstance(node.op, ast.FloorDiv):
            left, right = self.write(node.left).within(_PRODUCT), self.write(node.right).within(_ATOM)
            return Text(f"$F.floor({left} / {right})")
        raise Refused(node, "this operator does not exist in flows", "+ - * / // % ** and, or, not, comparisons")

    def _chain(self, node: ast.BinOp) -> Text:
        """Operators in a row are walked in a loop: there may be more of them than Python's stack is deep."""
        spine: list[ast.BinOp] = []
        leftmost: ast.expr = node
        while isinstance(leftmost, ast.BinOp) and type(leftmost.op) in _OPERATORS:
            spine.append(leftmost)
            leftmost = leftmost.left
        found = self.write(leftmost)
        for each in reversed(spine):
            sign, power = _OPERATORS[type(each.op)]
            found = Text(f"{found.within(power)} {sign} {self.write(each.right).within(power + 1)}", power)
        return found

    def _unary(self, node: ast.UnaryOp) -> Text:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Text(f"not {self.write(operand).within(_NOT)}", _NOT)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return Text(literal(node, -number))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Text(f"0 - {self.write(operand).within(_PRODUCT)}", _SUM)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.write(operand)
        raise Refused(node, "this operator does not exist in flows", "+ - * / // % ** and, or, not, comparisons")

    def _compare(self, node: ast.Compare) -> Text:
        pairs = [
            f"{self.write(left).within(_SUM)} {comparison(op, right)} {self.write(right).within(_SUM)}"
            for left, op, right in compared(node)
        ]
        return Text(pairs[0], _COMPARE) if len(pairs) == 1 else Text(" and ".join(pairs), _AND)

    def _template(self, node: ast.JoinedStr) -> str:
        texts = [str(part.value) for part in node.values if isinstance(part, ast.Constant)]
        if any("{%" in text or text.endswith("{") for text in texts) or "".join(texts[:1]).startswith("$"):
            return f"$F.concat({', '.join(self._pieces(node))})"
        parts = [
            f"{{% {self._formatted(part)} %}}" if isinstance(part, ast.FormattedValue) else str(ast.literal_eval(part))
            for part in node.values
        ]
        return "".join(parts)

    def _pieces(self, node: ast.JoinedStr) -> list[str]:
        return [
            self._formatted(part) if isinstance(part, ast.FormattedValue) else self.write(part).text
            for part in node.values
        ]

    def _formatted(self, part: ast.FormattedValue) -> str:
        if part.conversion != -1 or part.format_spec is not None:
            raise Refused(part, "a format cannot be given inside f-strings", "F.round(x, 2) rounds")
        return self.write(part.value).text


def compared(node: ast.Compare) -> list[tuple[ast.expr, ast.cmpop, ast.expr]]:
    """The pairs of a chain of comparisons."""
    return list(zip([node.left, *node.comparators], node.ops, node.comparators, strict=False))


def comparison(op: ast.cmpop, right: ast.expr) -> str:
    """The spelling of a comparison. Raises ``Refused`` for ``is`` with anything but a constant name."""
    if isinstance(op, ast.Is | ast.IsNot) and not (
        isinstance(right, ast.Constant) and (right.value is None or isinstance(right.value, bool))
    ):
        raise Refused(right, "`is` compares with None, True and False only", "write ==")
    return COMPARISONS[type(op)]


def quoted(text: str) -> str:
    """A text as a literal of the expression language."""
    return json.dumps(text, ensure_ascii=False)


def literal(node: ast.expr, value: Any) -> str:
    """A constant as a literal of the expression language. Raises ``Refused`` for what is not JSON."""
    if isinstance(value, str):
        _check_text(node, value)
        return quoted(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(literal(node, v) for v in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{quoted(str(k))}: {literal(node, v)}' for k, v in value.items())}}}"
    return json.dumps(_scalar(node, value))


def _check_text(node: ast.expr, text: str) -> None:
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise Refused(node, "the text has a surrogate that stands alone", "write the character itself")


def _scalar(node: ast.expr, value: object) -> Json:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise Refused(node, f"{str(value)[:40]} is not JSON", "values are text, numbers, True, False, None, lists, objects")


def _members(node: ast.Dict) -> list[tuple[str, ast.expr]]:
    found = []
    for key, value in zip(node.keys, node.values, strict=True):
        match key:
            case None:
                raise Refused(value, "unpacking with ** cannot be part of a flow", "name the keys")
            case ast.Constant(value=str(name)):
                found.append((name, value))
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                found.append((str(number), value))
            case _:
                raise Refused(key, "a key is a literal text", "F.set(object, key, value) takes a computed one")
    return found


def _key(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(name)):
            _check_text(node, name)
            return quoted(name)
        case ast.Constant(value=int(place)) if not isinstance(place, bool):
            return str(place)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(place))):
            return str(-place)
    hint = "F.getListItem(list, i) or F.get(object, key) takes a computed one"
    raise Refused(node, "a subscript is a number or a text", hint)
