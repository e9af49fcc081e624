"""JSON text to values and back."""

from __future__ import annotations

import json
from typing import Final

from plaita.base.errors import InputError
from plaita.base.json import Json, parse
from plaita.engine.expression.function import FunctionCategory, FunctionSpec
from plaita.engine.expression.functions.arguments import text_of
from plaita.engine.values import OperationError, check_size

_encode = json.JSONEncoder(allow_nan=False).encode


def loads(text: Json) -> Json:
    """The value a JSON text stands for; NaN, duplicate keys and the like are errors."""
    try:
        return parse(text_of(text))
    except InputError as e:
        raise OperationError(f"cannot read the text: {e.reason}") from None


def dumps(value: Json) -> str:
    """The value as JSON text in ASCII."""
    if type(value) is list or type(value) is dict:
        check_size(value)
    return _encode(value)


FUNCTIONS: Final = (
    FunctionSpec("json_loads", loads, FunctionCategory.JSON, 1, 1, description="value of a JSON text"),
    FunctionSpec("json_dumps", dumps, FunctionCategory.JSON, 1, 1, description="JSON text of a value"),
)
