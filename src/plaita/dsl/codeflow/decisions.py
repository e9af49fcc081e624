"""``if``: a decision between two ways."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plaita.dsl.codeflow.calls import literal_of
from plaita.dsl.codeflow.errors import Refused
from plaita.dsl.codeflow.naming import slug

if TYPE_CHECKING:
    from plaita.dsl.codeflow.statements import LevelWriter


def write(writer: LevelWriter, s: ast.If) -> None:
    """A chain of ``elif`` is written in a loop: it may be longer than Python's stack is deep."""
    meeting = writer.meeting()
    rest: Sequence[ast.stmt] = [s]
    while len(rest) == 1 and isinstance(rest[0], ast.If):
        chain = rest[0]
        writer.level.variables = dict(meeting.before)
        node = writer.add(_node(writer, chain), chain)
        writer.block(chain.body)
        meeting.arrive(writer)
        writer.pending, rest = [(node, "else_next")], chain.orelse
    writer.level.variables = dict(meeting.before)
    writer.block(rest)
    meeting.arrive(writer)
    meeting.go_on(writer)


def _node(writer: LevelWriter, s: ast.If) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "if", "id": "", "condition": None}
    test = s.test
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "IF":
        if len(test.args) != 1:
            raise Refused(test, "IF takes the test and keywords", 'IF(INPUT.a > 1, id="check")')
        node["id"] = writer.named(test, slug("if", test.args[0]))
        for keyword in test.keywords:
            if keyword.arg not in ("id", "name", "desc"):
                raise Refused(keyword, f"IF has no {keyword.arg!r}", "id, name, desc")
            node[keyword.arg] = literal_of(keyword.value)
        test = test.args[0]
    else:
        node["id"] = writer.level.ids.make(slug("if", test))
    node["condition"] = writer.condition(test)
    return node
