"""Plants a bug in the shipped code for the length of a block: one function is compiled anew from a changed source.

The product has no switches for this. Whoever imported the function by name runs the changed code too, because the
function object stays and only its code is exchanged.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any


@dataclass(frozen=True)
class Edit:
    """In the function ``module:name`` (or ``module:Class.name``) the text ``old`` becomes ``new``."""

    where: str
    old: str
    new: str


@contextmanager
def planted(edits: Sequence[Edit]) -> Iterator[None]:
    """Make the edits, and take them back."""
    with ExitStack() as stack:
        for edit in edits:
            stack.enter_context(_edited(edit))
        yield


@contextmanager
def _edited(edit: Edit) -> Iterator[None]:
    function = _find(edit.where)
    code = function.__code__
    function.__code__ = _changed(function, edit)
    try:
        yield
    finally:
        function.__code__ = code


def _find(where: str) -> FunctionType:
    module, _, path = where.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = vars(found)[name]
    if isinstance(found, property):
        found = found.fget
    assert isinstance(found, FunctionType), where
    return found


def _changed(function: FunctionType, edit: Edit) -> CodeType:
    source = inspect.getsource(function)
    assert source.count(edit.old) == 1, f"{edit.where} has {source.count(edit.old)} times: {edit.old}"
    lines = source.replace(edit.old, edit.new).splitlines()
    # A method keeps its indentation, so that the texts of an edit are those of the file.
    body = [line for line in lines if not line.lstrip().startswith("@")]
    text = "\n".join(["from __future__ import annotations", *(["if True:"] if body[0].startswith(" ") else []), *body])
    namespace = dict(function.__globals__)
    exec(compile(text, f"<{edit.where}>", "exec"), namespace)
    changed = namespace[function.__name__]
    assert isinstance(changed, FunctionType)
    return changed.__code__
