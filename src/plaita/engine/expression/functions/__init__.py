"""The documented functions, one module a topic."""

from types import MappingProxyType
from typing import Final

from plaita.engine.expression.function import FunctionTable
from plaita.engine.expression.functions import array, datetime, json, logic, math, object, text

BUILTIN_FUNCTIONS: Final[FunctionTable] = MappingProxyType(
    {
        spec.name: spec
        for topic in (math, text, logic, array, object, datetime, json)
        for spec in topic.FUNCTIONS
    }
)  # fmt: skip
"""All documented functions by name, aliases included."""
