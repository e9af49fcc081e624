"""``for … in MAP(…)`` and ``while``: the body is a flow of its own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from plaita.dsl.codeflow.calls import COLLECTIONS, call_name
from plaita.dsl.codeflow.conditions import condition
from plaita.dsl.codeflow.errors import Refused
from plaita.dsl.codeflow.naming import slug, text_of
from plaita.dsl.codeflow.scopes import LOOP_NAMES

if TYPE_CHECKING:
    from plaita.dsl.codeflow.statements import LevelWriter

_ROUND = {"item": "INPUT.item", "rounds": "INPUT.index"}


def write_for(writer: LevelWriter, s: ast.For) -> None:
    """Write a loop over a node call. Raises ``Refused``."""
    call = s.iter
    if not isinstance(call, ast.Call) or call_name(call) not in (*COLLECTIONS, "WHILE"):
        hint = f"for item in MAP({text_of(s.iter, 40)}, id='name'): …, or {', '.join(COLLECTIONS[1:])}"
        raise Refused(s.iter, "a loop goes over a node", hint)
    if s.orelse:
        raise Refused(s.orelse[0], "for … else cannot be part of a flow", "write it after the loop")
    kind = call_name(call).lower()
    given = {**_ROUND, **_targets(s, kind)} if kind == "while" else _targets(s, kind)
    names = LOOP_NAMES if kind == "while" else {}
    head = call.args[0] if call.args else None
    node_id = writer.named(call, slug(kind, head))
    node: dict[str, Any] = {"type": kind, "id": node_id}
    try:
        made = writer.calls(names).node(call, kind)
        node.update((k, v) for k, v in made.items() if k not in ("type", "id"))
    except Refused as e:
        writer.complain(e)
    pairs = kind == "reduce" and isinstance(s.target, ast.Tuple)
    _finish(writer, s, node, given, pairs=pairs)


def write_while(writer: LevelWriter, s: ast.While) -> None:
    """Write ``while test:``. Raises ``Refused``."""
    if s.orelse:
        raise Refused(s.orelse[0], "while … else cannot be part of a flow", "write it after the loop")
    node: dict[str, Any] = {"type": "while", "id": writer.level.ids.make(slug("while", s.test))}
    try:
        node["condition"] = condition(s.test, writer.calls(LOOP_NAMES).write)
    except Refused as e:
        writer.complain(e)
    _finish(writer, s, node, _ROUND, pairs=False)


def _finish(
    writer: LevelWriter, s: ast.For | ast.While, node: dict[str, Any], given: dict[str, str], *, pairs: bool
) -> None:
    body = writer.round(s.body, given)
    flow: dict[str, Any] = {"inputType": {"dataType": "array"}} if pairs else {}
    flow["nodes"] = body.nodes(s, "the round")
    node["child_flow" if node["type"] == "while" else "childFlow"] = flow
    writer.add(node, s)
    # The loop is a variable under its id, as in the published compiler.
    if node["id"].isidentifier() and node["id"] not in writer.level.assigned:
        writer.level.assigned[node["id"]] = s.lineno
        writer.level.variables[node["id"]] = node["id"]


def _targets(s: ast.For, kind: str) -> dict[str, str]:
    match s.target:
        case ast.Name(id=name):
            return {name: "INPUT"} if kind == "reduce" else {name: "INPUT.item"}
        case ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]):
            if kind == "reduce":
                return {first: "INPUT[0]", second: "INPUT[1]"}
            return {first: "INPUT.item", second: "INPUT.index"}
    hint = "for so_far, item in REDUCE(…)" if kind == "reduce" else "for item in …, or for item, index in …"
    raise Refused(s.target, "a loop has one name or two", hint)
