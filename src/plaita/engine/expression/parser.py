"""Tokens to a tree: operator precedence by binding power (Pratt), every limit checked while parsing.

From loose to tight: ``if else``, ``or``, ``and``, ``not``, comparisons and ``in`` (not chainable), ``+ -``, ``* / %``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NoReturn

from plaita.base.limits import EXPRESSION_CHAIN_MAX, EXPRESSION_DEPTH_MAX, EXPRESSION_TEXT_MAX
from plaita.engine.expression.errors import ExpressionSyntaxError
from plaita.engine.expression.lexer import FRACTION, TOKEN, number_of, split_path, split_steps, unquote
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
    Slot,
    Step,
)

_IF, _NOT, _COMPARE = 1, 4, 5
_POWER: Final = {
    "if": _IF, "or": 2, "and": 3, "in": _COMPARE, "not": _COMPARE,
    "==": _COMPARE, "!=": _COMPARE, "<": _COMPARE, "<=": _COMPARE, ">": _COMPARE, ">=": _COMPARE,
    "+": 6, "-": 6, "*": 7, "/": 7, "%": 7,
}  # fmt: skip
_CONSTANTS: Final = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_KEYWORDS: Final = frozenset(("if", "else", "or", "and", "in", "not"))
_HEIGHT_MAX: Final = EXPRESSION_DEPTH_MAX + EXPRESSION_CHAIN_MAX
_REMEMBERED_LENGTH: Final = 200
_FOREIGN: Final = {
    "=": "equality is written ==", "&": "write and", "|": "write or", "!": "write not or !=",
    "?": "write a if c else b", "^": "write $F.pow(a, b)", ";": "a field holds one expression",
    "*": "write $F.pow(a, b) for a power", "/": "write $F.floor(a / b)", "<": "write !=",
}  # fmt: skip


def parse_expression(text: str) -> Node:
    """The tree of a whole text that is one expression; raises ``ExpressionSyntaxError`` and nothing else.

    Nobody changes a tree: short texts, which repeat in a flow and from flow to flow, are parsed once.
    """
    return _remembered(text) if len(text) <= _REMEMBERED_LENGTH else _parse(text)


def _parse(text: str) -> Node:
    if len(text) > EXPRESSION_TEXT_MAX:
        raise ExpressionSyntaxError(f"an expression may have at most {EXPRESSION_TEXT_MAX} characters", 1)
    parser = _Parser(text, 0)
    node = parser.expression(0)
    if parser.kind != "eof":
        _refuse_trailing(parser)
    return node


_remembered = lru_cache(maxsize=2_048)(_parse)


def parse_template(text: str) -> list[str | Slot]:
    """The parts of a text with ``{% … %}`` slots; the expression parser finds the end of each slot."""
    parts: list[str | Slot] = []
    position = 0
    while (opening := text.find("{%", position)) >= 0:
        if opening > position:
            parts.append(text[position:opening])
        parser = _Parser(text, opening + 2)
        node = parser.expression(0)
        if parser.kind != "end":
            _refuse_trailing(parser)
        parts.append(Slot(text[opening + 2 : parser.start].strip(), node))
        position = parser.end
    if position < len(text):
        parts.append(text[position:])
    return parts


class _Parser:
    """One pass over one text. The current token is ``kind, token, start, end``.

    ``height`` is the height of the tree that was returned last: it bounds how deep evaluation can recurse.
    """

    __slots__ = ("depth", "end", "height", "kind", "previous_end", "start", "text", "token")

    def __init__(self, text: str, position: int) -> None:
        self.text, self.end, self.depth, self.height = text, position, 0, 1
        self.advance()

    def advance(self) -> None:
        self.previous_end = self.end
        match = TOKEN.match(self.text, self.end)
        assert match is not None and match.lastgroup is not None, "the last alternatives match anything"
        self.kind = match.lastgroup
        self.start, self.end = match.span(self.kind)
        self.token = self.text[self.start : self.end]

    def fail(self, message: str, hint: str = "", code: str = "expression_syntax") -> NoReturn:
        raise ExpressionSyntaxError(message, self.start + 1, hint, code)

    def expression(self, weakest: int) -> Node:
        """Parse operators that bind at least as tightly as ``weakest``."""
        left = self.operand()
        count, compared = 0, False
        while self.kind in ("operator", "word") and _POWER.get(self.token, -1) >= weakest:
            at, power = self.start, _POWER[self.token]
            count += 1
            if count > EXPRESSION_CHAIN_MAX:
                self.fail(f"more than {EXPRESSION_CHAIN_MAX} operators in a row", "put parts into their own nodes")
            if power == _IF:
                left = self.conditional(left)
                continue
            if compared and power == _COMPARE:
                self.fail("comparisons do not chain", "write a < b and b < c")
            compared = power == _COMPARE
            operator = self.operator()
            tall = self.height
            right = self.expression(power + 1)
            self.grow(tall)
            left = Binary(at, operator, left, right)
        return left

    def operator(self) -> str:
        """Consume an infix operator and return its spelling."""
        word = self.token
        if self.kind == "operator":
            before, after = self.text[self.start - 1], self.text[self.end : self.end + 1] or " "
            if not before.isspace() or not after.isspace():
                _refuse_missing_space(self, word)
        self.advance()
        if word != "not":
            return word
        if self.token != "in":
            self.fail("expected in after not")
        self.advance()
        return "not in"

    def conditional(self, then: Node) -> Node:
        at, tall = self.start, self.height
        self.enter()
        test = self.expression(_IF + 1)
        self.grow(tall, 0)
        tall = self.height
        if self.kind != "word" or self.token != "else":
            self.fail("expected else", "a conditional is written: a if condition else b")
        self.advance()
        otherwise = self.expression(_IF)
        self.leave(tall)
        return Conditional(at, test, then, otherwise)

    def operand(self) -> Node:
        """Parse one operand with the steps that follow it."""
        kind, token, at = self.kind, self.token, self.start
        self.height = 1
        if kind == "path":
            self.advance()
            root, steps = split_path(token)
            if self.token == "[" or self.kind == "step":
                _refuse_step(self)
            return Path(at, root, steps)
        if kind == "number" or FRACTION.match(self.text, at):
            return self.number()
        if kind == "string":
            self.advance()
            return Literal(at, unquote(token, at))
        if kind == "word":
            return self.word(token, at)
        if kind == "call":
            self.enter()
            node: Node = Call(at, token[:-1].rpartition(".")[2].strip(), self.members(")"))
            self.leave(0)
        elif kind == "wrap" or token == "(":
            self.enter()
            node = self.expression(0)
            self.close(")")
            self.leave(0)
        elif token == "[":
            self.enter()
            node = ListOf(at, self.members("]"))
            self.leave(0)
        elif token == "{":
            node = self.object(at)
        else:
            _refuse_start(self)
        return self.steps_after(node)

    def number(self) -> Node:
        at = self.start
        fraction = FRACTION.match(self.text, at)
        if fraction is not None:
            self.token, self.end = fraction[0], fraction.end()
        value = number_of(self.token, at)
        self.advance()
        return Literal(at, value)

    def word(self, token: str, at: int) -> Node:
        if token not in _CONSTANTS and token != "not":
            _refuse_word(self, token)
        if token == "not":
            self.enter()
            operand = self.expression(_NOT)
            self.leave(0)
            return Not(at, operand)
        self.advance()
        return Literal(at, _CONSTANTS[token])

    def members(self, closing: str) -> list[Node]:
        """Parse comma-separated expressions up to and including ``closing``."""
        found: list[Node] = []
        tall = 0
        if self.token == closing and self.kind == "mark":
            self.advance()
            return found
        while True:
            found.append(self.expression(0))
            tall = max(tall, self.height)
            if not self.separated(closing):
                self.height = tall
                return found

    def object(self, at: int) -> Node:
        self.enter()
        keys: list[str] = []
        values: list[Node] = []
        tall = 1
        more = not (self.kind == "mark" and self.token == "}")
        if not more:
            self.advance()
        while more:
            if self.kind != "string":
                self.fail("a key of an object is quoted text", f'write "{self.token}":' if self.kind == "word" else "")
            key = unquote(self.token, self.start)
            if key in keys:
                self.fail(f"key {key!r} appears twice in one object")
            keys.append(key)
            self.advance()
            if self.token != ":" or self.kind != "mark":
                self.fail("expected : after the key")
            self.advance()
            values.append(self.expression(0))
            tall = max(tall, self.height)
            more = self.separated("}")
        self.height = tall
        self.leave(0)
        return ObjectOf(at, keys, values)

    def separated(self, closing: str) -> bool:
        """Consume a comma (True: another member follows) or the closing mark (False)."""
        if self.kind != "mark" or self.token not in (",", closing):
            _refuse_member(self, closing)
        again = self.token == ","
        self.advance()
        if again and self.kind == "mark" and self.token == closing:
            self.fail(f"a comma before {closing} announces another value", "remove the comma")
        return again

    def close(self, closing: str) -> None:
        if self.kind != "mark" or self.token != closing:
            _refuse_member(self, closing)
        self.advance()

    def steps_after(self, node: Node) -> Node:
        steps: list[Step] = []
        while self.kind == "step" or (self.kind == "mark" and self.token == "["):
            if self.kind == "step":
                steps.extend(split_steps(self.token))
                self.advance()
                continue
            opening = self.start
            self.advance()
            if self.kind not in ("number", "string"):
                _refuse_step(self)
            self.advance()
            if self.token != "]":
                _refuse_step(self)
            found = split_steps(self.text[opening : self.end])
            if not found:
                _refuse_step(self)
            steps.extend(found)
            self.advance()
        return Access(node.at, node, tuple(steps)) if steps else node

    def enter(self) -> None:
        """Consume an opening token and count one level of nesting."""
        self.depth += 1
        if self.depth > EXPRESSION_DEPTH_MAX:
            self.fail(f"nested deeper than {EXPRESSION_DEPTH_MAX}", "put parts into their own nodes")
        self.advance()

    def leave(self, tall: int) -> None:
        self.depth -= 1
        self.grow(tall)

    def grow(self, tall: int, by: int = 1) -> None:
        """Note a tree one higher than the last one and its neighbour of height ``tall``."""
        self.height = max(self.height, tall) + by
        if self.height > _HEIGHT_MAX:
            self.fail(f"more than {_HEIGHT_MAX} operations inside each other", "put parts into their own nodes")


def _refuse_start(parser: _Parser) -> NoReturn:
    if parser.kind == "eof":
        parser.fail("the expression ends where a value is expected")
    if parser.kind == "end":
        parser.fail("the slot ends where a value is expected")
    if parser.kind == "operator":
        hint = "write 0 - x" if parser.token == "-" else ""
        parser.fail(f"{parser.token} needs a value before it", hint)
    if parser.token in "\"'":
        parser.fail("the quoted text has no end", 'a quote inside it is written \\" or doubled')
    parser.fail(f"unexpected {parser.token!r} where a value is expected", _FOREIGN.get(parser.token, ""))


def _refuse_word(parser: _Parser, token: str) -> NoReturn:
    if token in _KEYWORDS:
        parser.fail(f"{token} needs a value before it")
    parser.fail(f"unknown word {token!r}", f'write "{token}" for text or $INPUT.{token} for a value')


def _refuse_step(parser: _Parser) -> NoReturn:
    parser.fail(
        'a step is .name, [0] or ["key"]',
        "use $F.getListItem(list, i) or $F.get(object, key) for a computed one",
    )


def _refuse_member(parser: _Parser, closing: str) -> NoReturn:
    if parser.kind in ("eof", "end"):
        parser.fail(f"expected {closing} before the end")
    _refuse_trailing(parser)


def _refuse_missing_space(parser: _Parser, operator: str) -> NoReturn:
    parser.fail(f"{operator} needs a space on both sides", f"write a {operator} b", "expression_missing_space")


def _refuse_trailing(parser: _Parser) -> NoReturn:
    """Say what is wrong with a token that follows a complete operand."""
    if parser.kind == "eof":
        parser.fail("the slot has no end", 'close it with %}; write {% "{%" %} for the text {%')
    if parser.kind == "operator" and parser.token in _POWER:
        _refuse_missing_space(parser, parser.token)
    if parser.kind == "number" and parser.token[0] in "+-":
        _refuse_missing_space(parser, parser.token[0])
    if parser.text[parser.previous_end - 1] == "-":
        _refuse_missing_space(parser, "-")
    if parser.kind == "end":
        parser.fail("%} outside a template")
    if parser.kind == "word" and parser.token == "else":
        parser.fail("else without if")
    if parser.kind in ("path", "call", "number", "string", "word"):
        parser.fail(f"an operator is missing before {parser.token[:40]!r}")
    if parser.kind == "bad" and parser.token == ".":
        _refuse_step(parser)
    if parser.token in "\"'":
        parser.fail("the quoted text has no end")
    parser.fail(f"unexpected {parser.token!r}", _FOREIGN.get(parser.token, ""))
