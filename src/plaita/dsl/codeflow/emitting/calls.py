"""Single nodes to statements: assignments, calls of node types, loops, ends."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from pydantic.alias_generators import to_snake

from plaita.dsl.codeflow.calls import COLLECTIONS, LITERAL, type_of
from plaita.dsl.codeflow.emitting.values import Values, is_name, literal, quoted
from plaita.dsl.codeflow.errors import EmitError, Refused
from plaita.dsl.codeflow.naming import slug

if TYPE_CHECKING:
    from plaita.dsl.codeflow.emitting.level import LevelEmitter

_SKIPPED: Final = frozenset({"type", "id", "next", "source_line", "child_flow"})
_OWN_WAY: Final = {"branches": "parallel", "flow_id": "reference"}
"""Fields that one type says in its own way."""
_HANDLERS: Final = {"error_handler": "on_error", "timeout_handler": "on_timeout"}
_HANDLER_WORDS: Final = {"code": "error_code", "message": "error_message"}
_LOOP_ROOTS: Final = {"LOOP-ITEM": "item", "LOOP-INDEX": "rounds", "LOOP-RESULT": "result"}
_LOOPS: Final = frozenset({*(name.lower() for name in COLLECTIONS), "while"})


class CallEmitter:
    """Writes nodes of one level."""

    def __init__(self, level: LevelEmitter) -> None:
        self.level = level
        self.tests = Values(level._short, _LOOP_ROOTS)

    @property
    def values(self) -> Values:
        """Writes values of the level."""
        return self.level.values

    def statement(self, node: dict[str, Any]) -> list[str]:
        """The statement of a node that neither decides nor ends."""
        kind = node["type"]
        if kind in _LOOPS and _is_plain_body(child_of(node), kind):
            return self._loop(node, child_of(node))
        if kind == "assignment":
            return [self._assigned(node, self._assignment(node))]
        return [self._assigned(node, (placeholder_of(kind), self._arguments(node)))]

    def end(self, node: dict[str, Any], *, again: bool) -> str:
        """``return`` where it says the same as ``end(…)``."""
        fields = self._fields(node)
        kind = node.get("resultType", node.get("result_type", "success"))
        output = self.values.value(node.get("output"))
        fields.pop("output", None)
        fields.pop("result_type", None)
        fields.pop("error", None)
        has = node.get("output") is not None
        base = slug("return", ast.parse(output.text, mode="eval").body if has else None)
        if not again and self.level.is_made(str(node["id"]), base) and kind == "success" and not fields:
            return f"return {output.text}" if has else "return"
        said = [output.text] if has else []
        said += [] if kind == "success" else [f"result_type={quoted(kind)}"]
        said += [f"error={self.values.value(node['error']).text}"] if node.get("error") is not None else []
        said += [f"{key}={text}" for key, text in fields.items() if key in ("name", "desc")]
        said.append(f"id={quoted(self._again(node['id']) if again else node['id'])}")
        return f"end({', '.join(said)})"

    def _again(self, node_id: str) -> str:
        n = 2
        while f"{node_id}_{n}" in self.level.ways.nodes or f"{node_id}_{n}" in self.level.done:
            n += 1
        self.level.done.add(f"{node_id}_{n}")
        self.level.taken.add(f"{node_id}_{n}")
        return f"{node_id}_{n}"

    def _assigned(self, node: dict[str, Any], said: str | tuple[str, list[str]]) -> str:
        """The statement with the variable, or with the id where no variable can have that name."""
        node_id = str(node["id"])
        if self.level.is_free(node_id):
            self.level.variables.add(node_id)
            text = said if isinstance(said, str) else f"{said[0]}({', '.join(said[1])})"
            return f"{node_id} = {text}"
        name, arguments = ("ASSIGN", [said]) if isinstance(said, str) else said
        arguments = [*arguments, f"id={quoted(node_id)}"]
        return f"{name}({', '.join(arguments)})"

    def _assignment(self, node: dict[str, Any]) -> str | tuple[str, list[str]]:
        fields = self._fields(node)
        if "output" in node and fields.keys() <= {"output"}:
            return self.values.value(node["output"]).text
        output = [fields.pop("output")] if "output" in fields else []
        return "ASSIGN", [*output, *(f"{key}={text}" for key, text in fields.items())]

    def _arguments(self, node: dict[str, Any]) -> list[str]:
        child, said = child_of(node), []
        if node["type"] == "reference":
            flow_id = next((node[k] for k in ("flow_id", "flowId", "flowID") if node.get(k)), None)
            said += [quoted(str(flow_id))] if flow_id else [self.level.module.child(child)]
        elif child is not None:
            name = self.level.module.child(child)
            said += [name] if node["type"] == "child" else [f"flow={name}"]
        if node["type"] == "parallel":
            said.append(f"[{', '.join(self._branch(branch) for branch in node.get('branches') or ())}]")
        return said + [f"{key}={text}" for key, text in self._fields(node).items()]

    def _branch(self, branch: dict[str, Any]) -> str:
        flow = next((branch[k] for k in ("flow", "child_flow", "childFlow") if branch.get(k) is not None), None)
        said = [quoted(str(branch.get("name"))), self.level.module.child(flow)]
        if branch.get("input") is not None or branch.get("condition") is not None:
            said.append(self.values.value(branch.get("input")).text)
        if branch.get("condition") is not None:
            said.append(self.values.condition(branch["condition"]).text)
        return f"({', '.join(said)})"

    def _fields(self, node: dict[str, Any]) -> dict[str, str]:
        """Fields by the keyword that says them."""
        found: dict[str, str] = {}
        for key, value in node.items():
            name = to_snake(key)
            if name in _SKIPPED or node["type"] == _OWN_WAY.get(name):
                continue
            if not is_name(key):
                raise EmitError(f"field {key!r} of node {node['id']!r} is no keyword", "correct the flow first")
            if name in _HANDLERS:
                found[_HANDLERS[name]] = self._handler(value)
            elif name == "condition":
                found[name] = "False" if value is None else self.tests.condition(value).text
            elif name in LITERAL and (name != "value" or node["type"] == "mock"):
                found[name] = literal(value)
            else:
                found[key if _is_foreign(node["type"]) else name] = self.values.value(value).text
        return found

    def _handler(self, handler: dict[str, Any]) -> str:
        said = []
        for key, value in handler.items():
            name = _HANDLER_WORDS.get(key, to_snake(key))
            said.append(f"{name}={self.values.value(value).text if name == 'default_value' else literal(value)}")
        return f"ErrorHandler({', '.join(said)})"

    def _loop(self, node: dict[str, Any], child: dict[str, Any]) -> list[str]:
        kind, node_id = node["type"], str(node["id"])
        fields = self._fields(node)
        taken = set(self.level.ways.nodes) | _ids_within(child)
        given: dict[tuple[str, ...], str] = {}
        if kind == "reduce":
            pairs = (child.get("inputType") or child.get("input_type")) is not None
            target = "so_far, item" if pairs else "both"
            if not {"so_far", "item", "both"} & taken:
                given = {("0",): "so_far", ("1",): "item"} if pairs else {}
        else:
            target = "item" if "item" not in taken else "_"
            given = {("item",): "item"} if target == "item" else {}
        head = fields.pop("condition" if kind == "while" else "collection", None)
        first = [] if head is None else [head]
        body = self.level.body(child, given)
        base = slug(kind, ast.parse(head, mode="eval").body) if head is not None else kind
        is_made = self.level.is_made(node_id, base)
        said = [
            *first,
            *([] if is_made else [f"id={quoted(node_id)}"]),
            *(f"{k}={t}" for k, t in fields.items()),
        ]
        if kind == "while" and said == first and first:
            line = f"while {head}:"
        else:
            line = f"for {target} in {kind.upper()}({', '.join(said)}):"
        if node_id.isidentifier() and self.level.is_free(node_id):
            self.level.variables.add(node_id)
        return [line, *(f"    {text}" for text in body)]


def child_of(node: dict[str, Any]) -> Any:
    """The child flow of a node, in whichever spelling."""
    return node.get("childFlow") if node.get("childFlow") is not None else node.get("child_flow")


def placeholder_of(node_type: str) -> str:
    """What the source calls a type. Raises ``EmitError`` when it cannot."""
    name = "ASSIGN" if node_type == "assignment" else node_type.upper().replace("-", "_")
    if is_name(name):
        try:
            if type_of(ast.Call(ast.Name(name, ast.Load()), [], [])) == node_type:
                return name
        except Refused:
            pass
    raise EmitError(f"no call stands for the node type {node_type!r}", "register its class first")


def _is_foreign(node_type: str) -> bool:
    from plaita.node.registry import get_default_registry

    cls = get_default_registry().get(node_type)
    return cls is not None and not cls.__module__.startswith("plaita.node.")


def _is_plain_body(child: Any, kind: str) -> bool:
    """Does a block say all of the child flow?"""
    if not isinstance(child, dict):
        return False
    said = {key for key, value in child.items() if value not in (None, "", {}, [])} - {"nodes", "runtime"}
    if kind == "reduce" and (child.get("inputType") or child.get("input_type")) == {"dataType": "array"}:
        said -= {"inputType", "input_type"}
    return not said


def _ids_within(child: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    waiting = [child]
    while waiting:
        for node in waiting.pop().get("nodes") or ():
            found.add(str(node.get("id")))
            inner = child_of(node)
            if isinstance(inner, dict):
                waiting.append(inner)
    return found
