"""A whole source: the flow, the functions of its child flows, the imports."""

from __future__ import annotations

import re
from typing import Any

from pydantic.alias_generators import to_snake

from plaita.dsl.codeflow.compiling import OPTIONS
from plaita.dsl.codeflow.emitting.level import LevelEmitter
from plaita.dsl.codeflow.emitting.values import MEANT, is_name, literal, quoted
from plaita.dsl.codeflow.errors import EmitError
from plaita.dsl.codeflow.placeholders import NAMES
from plaita.node.registry import get_default_registry

CHILDREN_DEEP_MAX = 50


class Module:
    """Collects functions of child flows while a flow is written."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self._count = 0
        self._deep = 0

    def child(self, document: Any) -> str:
        """Write a function for a child flow and give its name. Raises ``EmitError``."""
        self._count += 1
        name = f"child_{self._count}"
        self._deep += 1
        if self._deep > CHILDREN_DEEP_MAX:
            raise EmitError(f"child flows are nested deeper than {CHILDREN_DEEP_MAX}", "")
        self.functions.append(self.function("childflow", name, document))
        self._deep -= 1
        return name

    def function(self, decorator: str, name: str, document: Any) -> str:
        """One decorated function."""
        if not isinstance(document, dict):
            raise EmitError("a child flow is not written out", "put its document where its text is")
        given = options_of(document)
        flow_id = given.pop("flow_id", None)
        said = [quoted(flow_id)] if flow_id else []
        said += [f"{key}={literal(value)}" for key, value in given.items()]
        head = f"@{decorator}({', '.join(said)})" if said else f"@{decorator}"
        lines = LevelEmitter(self, document.get("nodes") or []).lines()
        return "\n".join([head, f"def {name}():", *(f"    {line}" for line in lines)])


def options_of(document: dict[str, Any]) -> dict[str, Any]:
    """What a decorator says about a flow."""
    found: dict[str, Any] = {}
    flow_id = next((document[k] for k in ("flow_id", "flowId", "id") if document.get(k)), None)
    if flow_id:
        found["flow_id"] = str(flow_id)
    for key, value in document.items():
        if to_snake(key) in OPTIONS and value not in (None, "", {}, []):
            found[to_snake(key)] = value
    return found


def emit_source(ir: dict[str, Any]) -> str:
    """Python source of a flow. Raises ``EmitError`` when Python cannot say it: a graph cycle, ways that cross.

    Compiling it gives a flow with the same results; ids stay, but for the start and for ends that are said twice.
    """
    module = Module()
    flow_id = options_of(ir).get("flow_id", "")
    name = re.sub(r"\W+", "_", flow_id)
    try:
        main = module.function("flow", name if is_name(name) and name not in MEANT else "main", ir)
    except RecursionError:
        raise EmitError("the flow is nested too deeply for Python", "put parts into flows") from None
    body = "\n\n\n".join([*module.functions, main])
    types = [t.upper().replace("-", "_") for t in get_default_registry()]
    known = sorted({*NAMES, *types, "ErrorHandler", "childflow", "end", "flow"})
    used = [word for word in known if re.search(rf"(?<![\w.\"'$]){word}\b", body)]
    return f"from plaita.dsl.codeflow import {', '.join(used)}\n\n\n{body}\n"
