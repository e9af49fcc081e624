"""A function of the expression language as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeAlias


class FunctionCategory(StrEnum):
    """The shelf a function stands on in the reference."""

    MATH = "math"
    STRING = "string"
    LOGIC = "logic"
    ARRAY = "array"
    DICT = "dict"
    DATETIME = "datetime"
    JSON = "json"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """How one function is called.

    ``arguments_max`` ``None`` means any number. ``takes``: ``values`` (evaluated arguments), ``runs`` (the scope and
    the unevaluated arguments, for lazy ones) or ``facts`` (the facts of the run, then the values).
    ``yields``: ``checked`` results may be stored as they are, ``part`` ones are as good as the arguments, ``new``
    ones must be walked. ``operator``: the infix twin, when there is one.
    """

    name: str
    call: Callable[..., Any]
    category: FunctionCategory
    arguments_min: int
    arguments_max: int | None
    takes: Literal["values", "runs", "facts"] = "values"
    yields: Literal["checked", "part", "new"] = "checked"
    operator: str | None = None
    description: str = ""

    @property
    def arity(self) -> str:
        """Words such as ``2 arguments`` or ``1 to 3 arguments``."""
        low, high = self.arguments_min, self.arguments_max
        if high is None:
            return f"at least {low} argument{'s' * (low != 1)}"
        if low == high:
            return f"{low} argument{'s' * (low != 1)}"
        return f"{low} to {high} arguments"


FunctionTable: TypeAlias = Mapping[str, FunctionSpec]
"""The functions an expression may name."""
