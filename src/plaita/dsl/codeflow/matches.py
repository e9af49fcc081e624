"""``match``: over values it is a ``case`` node, over guards a ``switch``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from plaita.dsl.codeflow.calls import literal_of
from plaita.dsl.codeflow.errors import Refused
from plaita.dsl.codeflow.naming import slug

if TYPE_CHECKING:
    from plaita.dsl.codeflow.statements import End, LevelWriter

_SAY = "match SWITCH(): case _ if test: …"


def write(writer: LevelWriter, s: ast.Match) -> None:
    """Write a ``match``. Raises ``Refused``."""
    head = s.subject
    kind = head.func.id if isinstance(head, ast.Call) and isinstance(head.func, ast.Name) else ""
    if kind == "SWITCH":
        assert isinstance(head, ast.Call)
        _switch(writer, s, head)
    else:
        _case(writer, s, head, kind)


def _case(writer: LevelWriter, s: ast.Match, head: ast.expr, kind: str) -> None:
    node: dict[str, Any] = {"type": "case", "id": ""}
    target = head
    if kind == "CASE" and isinstance(head, ast.Call):
        if len(head.args) != 1:
            raise Refused(head, "CASE takes the value and keywords", 'match CASE(INPUT.code, id="which"):')
        target = head.args[0]
        _keywords(head, node, ("id", "name", "desc"))
        node["id"] = writer.named(head, slug("case", target))
    else:
        node["id"] = writer.level.ids.make(slug("case", target))
    node["target"] = writer.write.value(target)
    node["cases"] = []
    writer.add(node, s)
    arms: list[tuple[list[End], list[ast.stmt]]] = []
    has_default = False
    for arm in s.cases:
        if arm.guard is not None:
            raise Refused(arm.guard, "a case over a value has no guard", _SAY)
        if isinstance(arm.pattern, ast.MatchAs) and arm.pattern.pattern is None and arm.pattern.name is None:
            arms.append(([(node, "default")], arm.body))
            has_default = True
            continue
        entries: list[dict[str, Any]] = [{"id": "", "value": value} for value in _values(writer, arm.pattern)]
        node["cases"] += entries
        arms.append(([(entry, "id") for entry in entries], arm.body))
    if not has_default:
        arms.append(([(node, "default")], []))
    writer.ways(arms)


def _values(writer: LevelWriter, pattern: ast.pattern) -> list[Any]:
    match pattern:
        case ast.MatchValue(value=value):
            return [writer.write.value(value)]
        case ast.MatchSingleton(value=value):
            return [value]
        case ast.MatchOr(patterns=patterns):
            return [value for p in patterns for value in _values(writer, p)]
    raise Refused(pattern, "a case is a value, several with |, or _", _SAY)


def _switch(writer: LevelWriter, s: ast.Match, head: ast.Call) -> None:
    node: dict[str, Any] = {"type": "switch", "id": writer.named(head, "switch"), "branches": []}
    if head.args:
        raise Refused(head, "SWITCH takes keywords only", _SAY)
    must = next((k for k in head.keywords if k.arg == "must_match"), None)
    strict = must is not None and literal_of(must.value) is True
    _keywords(head, node, ("id", "name", "desc", "must_match"))
    writer.add(node, s)
    arms: list[tuple[list[End], list[ast.stmt]]] = []
    for arm in s.cases:
        branch: dict[str, Any] = {}
        match arm.pattern:
            case ast.MatchValue(value=ast.Constant(value=str(name))):
                branch["name"] = name
            case ast.MatchAs(pattern=None, name=None):
                pass
            case _:
                raise Refused(arm.pattern, "a branch is _ or its name", _SAY)
        if arm.guard is not None:
            branch["condition"] = writer.condition(arm.guard)
        else:
            branch["isDefault"] = True
        node["branches"].append(branch)
        arms.append(([(branch, "next")], arm.body))
    if not strict and not any("isDefault" in b for b in node["branches"]):
        branch = {"isDefault": True}
        node["branches"].append(branch)
        arms.append(([(branch, "next")], []))
    writer.ways(arms)


def _keywords(call: ast.Call, node: dict[str, Any], known: tuple[str, ...]) -> None:
    for keyword in call.keywords:
        if keyword.arg not in known:
            raise Refused(keyword, f"there is no {keyword.arg!r} here", ", ".join(known))
        if keyword.arg in ("name", "desc"):
            node[keyword.arg] = literal_of(keyword.value)
