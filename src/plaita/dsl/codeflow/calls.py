"""Calls of node types, ``HTTP(url, method="GET")``, to documents of nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic.alias_generators import to_camel

from plaita.base.spelling import suggest
from plaita.dsl.codeflow.conditions import condition
from plaita.dsl.codeflow.errors import Refused
from plaita.dsl.codeflow.expressions import Expressions
from plaita.dsl.codeflow.naming import text_of
from plaita.dsl.codeflow.scopes import LOOP_NAMES
from plaita.node.basic import Node
from plaita.node.registry import get_default_registry
from plaita.node.spelling import spellings

TYPES: Final = {"ASSIGN": "assignment"}
COLLECTIONS: Final = ("MAP", "FILTER", "FIND", "LOOP", "REDUCE")
STATEMENTS: Final = {
    "IF": "if …:", "SWITCH": "match SWITCH(): case _ if …:", "CASE": "match …: case …:", "START": "",
    "END": "end(…) or return", "WHILE": "while …:",
}  # fmt: skip
"""Placeholders that are no statement of their own, and what to write."""
POSITIONAL: Final = {
    "http": ("url", "method"), "code": ("code", "lang"), "event": ("event_type", "event_filter"),
    "assignment": ("output", "output_type"), "child": ("flow", "input"), "reference": ("flow", "input"),
    "parallel": ("branches",), "map": ("collection",), "filter": ("collection",), "find": ("collection",),
    "loop": ("collection",), "reduce": ("collection", "initial"), "while": ("condition",), "mock": ("value",),
}  # fmt: skip
RENAMED: Final = {
    "on_error": "error_handler", "on_timeout": "timeout_handler", ("code", "lang"): "language",
    ("event", "filter"): "event_filter", ("parallel", "join"): "join_branches", "flow": "child_flow",
}  # fmt: skip
"""Keywords that a field is called by, for every type or for one."""
LITERAL: Final = frozenset({
    "id", "name", "desc", "code", "language", "sandbox_backend", "mode", "join_branches", "on_doubt", "is_conditional",
    "on_branch_error", "concurrent", "output_type", "item_type", "flow_id", "flow_version", "source_line", "value",
})  # fmt: skip
"""Fields that are not evaluated when the flow runs; ``value`` is that of ``mock``."""
UNKNOWN_HINT: Final = "name the file or module of a custom type: metadata={'imports': […]}, or --register MODULE"
HANDLERS: Final = ("error_handler", "timeout_handler")
HANDLER_FIELDS: Final = {
    "strategy": "strategy", "retry_times": "retryTimes", "default_value": "defaultValue", "error_code": "code",
    "code": "code", "error_message": "message", "message": "message", "retry": "retry",
}  # fmt: skip
_HANDLER_ORDER: Final = ("strategy", "retry_times", "default_value", "error_code", "error_message")
_REQUIRED: Final = {"http": "url", "code": "code", "event": "event_type", "child": "child_flow", "parallel": "branches"}


def type_of(call: ast.expr) -> str | None:
    """The node type that a call names in capitals; ``None`` when it is no such call. Raises ``Refused`` if unknown."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    name = call.func.id
    if not name.isupper():
        return None
    registry = get_default_registry()
    for node_type in (TYPES.get(name), name.lower(), name.lower().replace("_", "-")):
        if node_type is not None and node_type in registry:
            return node_type
    names = [t.upper().replace("-", "_") for t in registry.list_types()]
    hint = suggest(name, names) or UNKNOWN_HINT
    raise Refused(call, f"there is no node type {name.lower()!r}", hint)


@dataclass
class Calls:
    """Makes nodes of calls. ``sub_flow`` compiles the child flow that an expression names."""

    write: Expressions
    sub_flow: Callable[[ast.expr], dict[str, Any]]
    names: dict[str, Any] = field(default_factory=dict)

    def node(self, call: ast.Call, node_type: str) -> dict[str, Any]:
        """The node without ``next``; without ``id`` when the call has none. Raises ``Refused``."""
        node: dict[str, Any] = {"type": node_type}
        for name, value in self._arguments(call, node_type):
            node[_key(node_type, name)] = self._field(node_type, name, value)
        wanted = _REQUIRED.get(node_type)
        if wanted is not None and _key(node_type, wanted) not in node:
            raise Refused(call, f"{call_name(call)} needs {_said(node_type, wanted)}")
        if node_type == "http":
            node.setdefault("method", "POST")
        if node_type == "reference" and isinstance(node.get("childFlow"), str):
            node["flowId"] = node.pop("childFlow")
        return node

    def _arguments(self, call: ast.Call, node_type: str) -> list[tuple[str, ast.expr]]:
        order = POSITIONAL.get(node_type, ())
        if len(call.args) > len(order):
            most = f"at most {len(order)} values" if order else "keywords only"
            raise Refused(call, f"{call_name(call)} takes {most}", "write field=value")
        found = [(name, value) for name, value in zip(order, call.args, strict=False)]
        for keyword in call.keywords:
            if keyword.arg is None:
                raise Refused(keyword, "unpacking with ** cannot be part of a flow", "name the fields")
            found.append((keyword.arg, keyword.value))
        renamed = [(RENAMED.get((node_type, n), RENAMED.get(n, n)), v) for n, v in found]
        for (name, value), (said, _) in zip(renamed, found, strict=True):
            if sum(n == name for n, _ in renamed) > 1:
                raise Refused(value, f"{said!r} is given twice")
            _check_field(node_type, name, said, value)
        return renamed

    def _field(self, node_type: str, name: str, value: ast.expr) -> Any:
        if name in HANDLERS:
            return self.handler(value)
        if name == "condition":
            return condition(value, Expressions(self.write.level, {**LOOP_NAMES, **self.write.names}))
        if name == "child_flow":
            is_id = node_type == "reference" and isinstance(value, ast.Constant)
            return literal_of(value) if is_id else self.sub_flow(value)
        if name == "branches" and node_type == "parallel":
            return self._branches(value)
        if name in LITERAL and (name != "value" or node_type == "mock"):
            return literal_of(value)
        return self.write.value(value)

    def handler(self, node: ast.expr) -> dict[str, Any]:
        """The document of ``ErrorHandler(…)`` or of a dict that stands for it. Raises ``Refused``."""
        match node:
            case ast.Call(func=ast.Name(id="ErrorHandler"), args=args, keywords=keywords) if len(args) <= 5:
                given = [*zip(_HANDLER_ORDER, args, strict=False), *((k.arg, k.value) for k in keywords)]
            case ast.Dict():
                given = [(getattr(k, "value", None), v) for k, v in zip(node.keys, node.values, strict=True)]
            case _:
                raise Refused(node, "a handler is ErrorHandler(…)", 'ErrorHandler(strategy="continue", retry_times=2)')
        camel = {to_camel(name): key for name, key in HANDLER_FIELDS.items()}
        found: dict[str, Any] = {}
        for name, value in given:
            key = HANDLER_FIELDS.get(str(name)) or camel.get(str(name))
            if key is None:
                raise Refused(value, f"ErrorHandler has no {name!r}", suggest(str(name), HANDLER_FIELDS))
            found[key] = self.write.value(value) if key == "defaultValue" else literal_of(value)
        return found

    def _branches(self, node: ast.expr) -> list[dict[str, Any]]:
        match node:
            case ast.Dict(keys=keys, values=values):
                return [self._branch(key or value, [value]) for key, value in zip(keys, values, strict=True)]
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self._listed(item) for item in items]
        hint = '{"name": child} or [("name", child, input, condition)]'
        raise Refused(node, "branches are an object or a list", hint)

    def _listed(self, item: ast.expr) -> dict[str, Any]:
        match item:
            case ast.Tuple(elts=[name, *rest]) | ast.List(elts=[name, *rest]) if 1 <= len(rest) <= 3:
                return self._branch(name, rest)
            case ast.Dict(keys=keys, values=values):
                given = {getattr(k, "value", None): v for k, v in zip(keys, values, strict=True)}
                said = [given.get(k) for k in ("flow", "input", "condition")]
                if "name" in given and said[0] is not None and given.keys() <= {"name", "flow", "input", "condition"}:
                    return self._branch(given["name"], said)
        raise Refused(item, "a branch is (name, child flow), with an input and a condition if it has them")

    def _branch(self, name: ast.expr, rest: Sequence[ast.expr | None]) -> dict[str, Any]:
        flow, given, test = [*rest, None, None][:3]
        assert flow is not None, "a branch has a flow"
        branch: dict[str, Any] = {"name": literal_of(name), "flow": self.sub_flow(flow)}
        if given is not None and not _is_none(given):
            branch["input"] = self.write.value(given)
        if test is not None and not _is_none(test):
            branch["condition"] = condition(test, self.write)
        return branch


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def call_name(call: ast.Call) -> str:
    """What the source calls the node type."""
    return text_of(call.func)


def literal_of(node: ast.expr) -> Any:
    """The value of a literal. Raises ``Refused`` for anything that would have to be evaluated."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise Refused(node, "a literal is needed here: the value is not evaluated when the flow runs") from None
    return as_json(node, value)


def as_json(node: ast.expr, value: Any) -> Any:
    """A Python literal as JSON: tuples are lists. Raises ``Refused`` for what JSON does not have."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [as_json(node, item) for item in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: as_json(node, item) for key, item in value.items()}
    raise Refused(node, f"{str(value)[:40]} is not JSON", "values are text, numbers, True, False, None, lists, objects")


def _key(node_type: str, name: str) -> str:
    """What a document calls a field: camelCase in our own types, as it is written in others."""
    if node_type == "while" and name == "child_flow":
        return name
    cls = get_default_registry().get(node_type)
    is_ours = cls is not None and cls.__module__.startswith("plaita.node.")
    return to_camel(name) if is_ours or name in HANDLERS or name == "child_flow" else name


def _said(node_type: str, field_name: str) -> str:
    return next((n for n in POSITIONAL.get(node_type, ()) if RENAMED.get(n, n) == field_name), field_name)


def _check_field(node_type: str, name: str, said: str, at: ast.expr) -> None:
    cls = get_default_registry().get(node_type)
    if cls is None or cls.model_config.get("extra") == "allow":
        return
    known = spellings(cls) | cls.LEGACY_KEYS
    if name not in known or name == "next":
        own = sorted(set(cls.model_fields) - set(Node.model_fields))
        hint = suggest(said, cls.model_fields) or f"fields: {', '.join(own)}"
        raise Refused(at, f"{node_type!r} has no field {said!r}", hint)
