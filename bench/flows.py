"""The documents that are measured; plain dicts, so that every subject loads the same text."""

from __future__ import annotations

from typing import Any

Doc = dict[str, Any]


def _flow(nodes: list[Doc], name: str) -> Doc:
    return {"flow_id": name, "version": "1", "nodes": nodes}


def chain(count: int) -> Doc:
    """start -> count assignments -> end."""
    nodes: list[Doc] = [{"id": "start", "type": "start", "next": "a1"}]
    for i in range(1, count + 1):
        output = "$F.add($INPUT.x, 1)" if i == 1 else f"$F.add($NODE.a{i - 1}, 1)"
        following = f"a{i + 1}" if i < count else "end"
        nodes.append({"id": f"a{i}", "type": "assignment", "output": output, "next": following})
    nodes.append({"id": "end", "type": "end", "output": f"$NODE.a{count}"})
    return _flow(nodes, f"chain{count}")


def ifs(count: int) -> Doc:
    """count times if -> assignment."""
    nodes: list[Doc] = [{"id": "start", "type": "start", "next": "i1"}]
    for i in range(1, count + 1):
        following = f"i{i + 1}" if i < count else "end"
        condition = {"field": "$INPUT.x", "operator": "gt", "value": 5}
        nodes.append({"id": f"i{i}", "type": "if", "condition": condition, "next": f"y{i}", "else_next": f"n{i}"})
        nodes.append({"id": f"y{i}", "type": "assignment", "output": "$INPUT.x", "next": following})
        nodes.append({"id": f"n{i}", "type": "assignment", "output": "$INPUT.y", "next": following})
    nodes.append({"id": "end", "type": "end", "output": "ok"})
    return _flow(nodes, "ifs")


def switches(count: int) -> Doc:
    """count times switch of five -> assignment."""
    nodes: list[Doc] = [{"id": "start", "type": "start", "next": "i1"}]
    for i in range(1, count + 1):
        following = f"i{i + 1}" if i < count else "end"
        branches: list[Doc] = [
            {"name": f"b{k}", "condition": {"field": "$INPUT.x", "operator": "eq", "value": k}, "next": f"y{i}"}
            for k in range(5)
        ]
        branches.append({"name": "d", "isDefault": True, "next": f"y{i}"})
        nodes.append({"id": f"i{i}", "type": "switch", "branches": branches})
        nodes.append({"id": f"y{i}", "type": "assignment", "output": "$INPUT.x", "next": following})
    nodes.append({"id": "end", "type": "end", "output": "ok"})
    return _flow(nodes, "switches")


def rounds(kind: str) -> Doc:
    """A collection node over 1000 items with a body of three nodes."""
    body = [
        {"id": "s", "type": "start", "next": "a"},
        {"id": "a", "type": "assignment", "output": "$F.add($INPUT.item, $INPUT.index)", "next": "e"},
        {"id": "e", "type": "end", "output": "$NODE.a"},
    ]
    host = {"id": "l", "type": kind, "collection": "$INPUT.xs", "childFlow": {"nodes": body}, "next": "end"}
    nodes = [{"id": "start", "type": "start", "next": "l"}, host, {"id": "end", "type": "end", "output": "$NODE.l"}]
    return _flow(nodes, kind)


EXPRESSION_INPUT: Doc = {"x": 3, "name": "ann", "items": list(range(20)), "d": {"a": {"b": {"c": 7}}}}
EXPRESSIONS: Doc = {
    "path": "$INPUT.x",
    "deep path": "$INPUT.d.a.b.c",
    "call": "$F.add($INPUT.x, 1)",
    "nested call": "$F.add($F.mul($INPUT.x, 2), $INPUT.d.a.b.c)",
    "template": "hi {% $INPUT.name %}, {% $INPUT.x %}",
    "object of 5": {"a": "$INPUT.x", "b": "$INPUT.d.a", "c": "$F.add($INPUT.x,1)", "d": "lit", "e": [1, "$INPUT.name"]},
}
