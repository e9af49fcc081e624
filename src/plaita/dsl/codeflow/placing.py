"""Where in the Python source an issue of the compiled document comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pydantic.alias_generators import to_camel, to_snake

from plaita.base.issues import Issue

_STEP = re.compile(r"\.([\w$-]+)|\[(\d+)\]")


def placed(issues: Iterable[Issue], document: dict[str, Any]) -> list[Issue]:
    """The issues with the line of the statement that made the node they are about."""
    return [replace(issue, line=line_of(issue.path, document), column=None) for issue in issues]


def line_of(path: str, document: dict[str, Any]) -> int | None:
    """The line of the innermost node on a JSON path."""
    here: Any = document
    line: int | None = None
    for name, index in _STEP.findall(path):
        if isinstance(here, list) and index and int(index) < len(here):
            here = here[int(index)]
        elif isinstance(here, dict) and name:
            here = next((here[key] for key in (name, to_camel(name), to_snake(name)) if key in here), None)
        else:
            break
        if isinstance(here, dict):
            line = here.get("source_line") or line
    return line
