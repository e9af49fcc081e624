"""Ids that nobody wrote: made of the text of the statement, so that an edit elsewhere does not change them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence, Set
from typing import Final

SLUG_MAX: Final = 32
_WORDS: Final = (
    (" >= ", " gte "), (" <= ", " lte "), (" == ", " eq "), (" != ", " ne "), (" > ", " gt "), (" < ", " lt "),
    (" + ", " plus "), (" - ", " minus "), (" * ", " times "), (" / ", " by "),
)  # fmt: skip
_UNSAID: Final = re.compile(r"\b(INPUT|NODE|F)\.")


def slug(kind: str, part: ast.expr | None) -> str:
    """``if_amount_gt_100`` from ``if`` and ``INPUT.amount > 100``; ``kind`` alone for what has no short name."""
    if part is None or isinstance(part, ast.Dict | ast.List | ast.Tuple | ast.JoinedStr):
        return kind
    text = _UNSAID.sub("", text_of(part))
    for sign, word in _WORDS:
        text = text.replace(sign, word)
    text = re.sub(r"\W+", "_", text).strip("_")
    if len(text) > SLUG_MAX:
        text = text[:SLUG_MAX].rpartition("_")[0] or text[:SLUG_MAX]
    return f"{kind}_{text}" if text else kind


def text_of(part: ast.AST, most: int = 4 * SLUG_MAX) -> str:
    """The source of a part, for people and for ids; empty for what is nested too deeply to be said."""
    try:
        return ast.unparse(part)[:most]
    except RecursionError:
        return ""


def is_plain(node_id: str) -> bool:
    """Can the id follow a dot in a path?"""
    return re.fullmatch(r"[\w$-]+", node_id) is not None


def written_ids(statements: Sequence[ast.stmt]) -> Iterator[str]:
    """Ids that one level writes itself: its variables and every ``id="…"``; made ids keep out of their way."""
    for statement in statements:
        for part in _own_parts(statement):
            match part:
                case ast.Name(id=name, ctx=ast.Store()):
                    yield name
                case ast.keyword(arg="id", value=ast.Constant(value=str(node_id))):
                    yield node_id


def _own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """Everything in a statement that is not the body of a loop."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, ast.For):
            waiting.append(part.iter)
        elif isinstance(part, ast.While):
            waiting.append(part.test)
        else:
            waiting.extend(ast.iter_child_nodes(part))


class Ids:
    """The ids of one level."""

    def __init__(self, written: Iterator[str]) -> None:
        self._taken = {"start", *written}

    def make(self, base: str) -> str:
        """A free id: the base itself or the base with a number."""
        found = free(base, self._taken)
        self._taken.add(found)
        return found


def free(base: str, taken: Set[str]) -> str:
    """The first of ``base``, ``base_2``, … that is not taken."""
    found, n = base, 1
    while found in taken:
        n += 1
        found = f"{base}_{n}"
    return found
