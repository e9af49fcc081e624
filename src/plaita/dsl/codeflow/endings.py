"""``return`` and ``end(…)``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from plaita.dsl.codeflow.calls import literal_of
from plaita.dsl.codeflow.errors import Refused
from plaita.dsl.codeflow.naming import slug

if TYPE_CHECKING:
    from plaita.dsl.codeflow.statements import LevelWriter

FIELDS: Final = ("output", "result_type", "error", "id", "name", "desc")


def write_return(writer: LevelWriter, s: ast.Return) -> None:
    """Write ``return``."""
    node_id = writer.level.ids.make(slug("return", s.value))
    _end(writer, s, node_id, {} if s.value is None else {"output": writer.value(s.value)})


def write_call(writer: LevelWriter, s: ast.stmt, call: ast.Call) -> None:
    """Write ``end(…)``. Raises ``Refused``."""
    if len(call.args) > 1:
        raise Refused(call, "end takes the output and keywords", "end(output, result_type=…, error=…)")
    given = [*(("output", value) for value in call.args), *((k.arg, k.value) for k in call.keywords)]
    fields: dict[str, Any] = {}
    for name, value in given:
        if name in ("output", "error"):
            fields[name] = writer.value(value)
        elif name in ("result_type", "name", "desc", "id"):
            fields["resultType" if name == "result_type" else name] = literal_of(value)
        elif name in ("timeout", "on_error", "on_timeout"):
            continue
        else:
            raise Refused(value, f"end has no {name!r}", ", ".join(FIELDS))
    fields.pop("id", None)
    _end(writer, s, writer.named(call, slug("return", call.args[0] if call.args else None)), fields)


def _end(writer: LevelWriter, s: ast.stmt, node_id: str, fields: dict[str, Any]) -> None:
    writer.add({"type": "end", "id": node_id, **fields}, s)
    writer.pending = []
