"""Flows written as Python functions: a subset of Python is compiled, nothing of it is executed.

    @flow("greeting")
    def greeting():
        name = F.title(INPUT.name)
        return F.concat("Hello ", name)

    greeting.run(name="ann")

``greeting`` is a ``Flow``. The compiler is imported when the first function is compiled.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plaita.dsl.codeflow.placeholders import NAMES, ErrorHandler, Placeholder, end

if TYPE_CHECKING:
    from plaita.dsl.codeflow.canonical import (
        canonical_node,
        count_nodes,
        embed_source,
        serialize_canonical,
        to_canonical,
    )
    from plaita.dsl.codeflow.compiling import compile_func, compile_source, flow_from_source
    from plaita.dsl.codeflow.decorating import childflow, flow
    from plaita.dsl.codeflow.emitting import emit_source
    from plaita.dsl.codeflow.errors import CodeflowError, EmitError

_HOMES = {
    "flow": "decorating", "childflow": "decorating", "compile_source": "compiling", "compile_func": "compiling",
    "flow_from_source": "compiling", "emit_source": "emitting", "to_canonical": "canonical",
    "canonical_node": "canonical", "serialize_canonical": "canonical", "embed_source": "canonical",
    "count_nodes": "canonical", "CodeflowError": "errors", "EmitError": "errors",
}  # fmt: skip

INPUT: Any
NODE: Any
GLOBAL: Any
PARENT: Any
ENV: Any
STATE: Any
F: Any
HTTP: Any
CODE: Any
EVENT: Any
MAP: Any
FILTER: Any
FIND: Any
LOOP: Any
REDUCE: Any
WHILE: Any
CHILD: Any
REFERENCE: Any
PARALLEL: Any
ASSIGN: Any
MOCK: Any
DELAY: Any
APPROVAL: Any
SWITCH: Any
CASE: Any
IF: Any
globals().update({name: Placeholder(name) for name in NAMES})

__all__ = [
    "flow", "childflow", "flow_from_source", "compile_source", "compile_func", "emit_source", "to_canonical",
    "canonical_node", "serialize_canonical", "embed_source", "count_nodes", "CodeflowError", "EmitError",
    "ErrorHandler", "end", "INPUT", "NODE", "GLOBAL", "PARENT", "ENV", "STATE", "F", "HTTP", "CODE", "EVENT",
    "MAP", "FILTER", "FIND", "LOOP", "REDUCE", "WHILE", "CHILD", "REFERENCE", "PARALLEL", "ASSIGN", "MOCK",
    "DELAY", "APPROVAL", "SWITCH", "CASE", "IF",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is not None:
        value = getattr(import_module(f"plaita.dsl.codeflow.{home}"), name)
        globals()[name] = value
        return value
    if name.isupper():
        # Whether there is such a node type is said by the flow that calls it, with its line: it may name its imports.
        return Placeholder(name)
    raise AttributeError(f"module 'plaita.dsl.codeflow' has no attribute {name!r}")
