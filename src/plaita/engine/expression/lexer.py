"""Text to tokens: one regular expression, asked for the next token at a position.

A path is one token with all its well-formed steps; ``-`` and ``$`` are name characters in it, which is why an infix
operator needs spaces around it.
"""

from __future__ import annotations

import re
from typing import Final

from plaita.base.limits import INTEGER_DIGITS_MAX
from plaita.engine.expression.errors import ExpressionSyntaxError
from plaita.engine.expression.syntax import Step

_STRING = r'"(?:[^"\\]++|\\.|"")*+"' + r"|'(?:[^'\\]++|\\.|'')*+'"
_STEP = rf"\s*+(?:\.\s*+[\w$-]++|\[\s*+(?:-?[0-9]++|{_STRING})\s*+\])"

TOKEN: Final = re.compile(
    rf"""\s*+(?:
      (?P<call>\$F\s*+\.\s*+[^\W\d]\w*+\s*+\()
    | (?P<wrap>\$\()
    | (?P<path>\$[\w$-]*+(?:{_STEP})*+)
    | (?P<number>[+-]?[0-9]++(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?(?![\w$]))
    | (?P<string>{_STRING})
    | (?P<word>[^\W\d]\w*+)
    | (?P<end>%\}})
    | (?P<operator>[=!]=|<=|>=|[<>+*/%-])(?![=<>*/])
    | (?P<mark>[()\[\]{{}},:])
    | (?P<step>\.\s*+[\w$-]++)
    | (?P<eof>\Z)
    | (?P<bad>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
"""Always matches; ``lastgroup`` is the kind of the token."""

FRACTION: Final = re.compile(r"[+-]?\.[0-9]++(?:[eE][+-]?[0-9]++)?(?![\w$])")
"""A number without a digit before its point. Behind an operand the same text is a step."""

_STEPS = re.compile(rf"\s*+(?:\.\s*+([\w$-]++)|\[\s*+(?:(-?[0-9]++)|({_STRING}))\s*+\])", re.DOTALL)
_PLAIN = re.compile(r"\$[\w$-]*+(?:\.[\w$-]++)*+")
_ESCAPE = re.compile(r"""\\(?:u([0-9a-fA-F]{4})|(.))|(""|'')""", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b"}
_INDEX_DIGITS_MAX = 15


def split_path(text: str) -> tuple[str, tuple[Step, ...]]:
    """Root and steps of a path token."""
    if _PLAIN.fullmatch(text):
        root, *keys = text.split(".")
        return root[1:], tuple([Step(k, int(k) if _counts(k) else None) for k in keys])
    first = _STEPS.search(text)
    assert first is not None, "a path that is not plain has a step"
    return text[1 : first.start()], split_steps(text[first.start() :])


def split_steps(text: str) -> tuple[Step, ...]:
    """Steps of a text made of well-formed steps only. A quoted key never counts as an index."""
    steps = []
    for name, index, quoted in _STEPS.findall(text):
        if quoted:
            steps.append(Step(unquote(quoted)))
        elif index:
            steps.append(Step(index, int(index) if _counts(index.removeprefix("-")) else None))
        else:
            steps.append(Step(name, int(name) if _counts(name) else None))
    return tuple(steps)


def _counts(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) <= _INDEX_DIGITS_MAX


def unquote(token: str, at: int = 0) -> str:
    """The text of a quoted token: backslash escapes as in JSON, a doubled quote is one quote."""
    body = token[1:-1]
    if "\\" not in body and token[0] not in body:
        return body
    text = _ESCAPE.sub(lambda m: _unescape(m, token[0]), body)
    if "\\u" not in body:
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ExpressionSyntaxError("an escaped surrogate stands alone", at + 1) from None


def _unescape(match: re.Match[str], quote: str) -> str:
    code, char, doubled = match.groups()
    if code:
        return chr(int(code, 16))
    if char is not None:
        return _CONTROL.get(char, char)
    return quote if doubled[0] == quote else str(doubled)


def number_of(token: str, at: int) -> int | float:
    """The value of a number token; refused beyond what JSON numbers here can hold."""
    if token.lstrip("+-").isdigit():
        if len(token) > INTEGER_DIGITS_MAX:
            raise ExpressionSyntaxError(f"an integer may have at most {INTEGER_DIGITS_MAX} digits", at + 1)
        return int(token)
    value = float(token)
    if value in (float("inf"), float("-inf")):
        raise ExpressionSyntaxError(f"{token[:40]} is too large for a number", at + 1)
    return value
