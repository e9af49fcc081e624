"""The names of ``plaita.core.types`` under their older path; asking for one warns."""

from __future__ import annotations

from plaita.base.moved import moved

_NAMES = frozenset((
    "ANY", "ARRAY", "BOOL", "DATE", "DATETIME", "DECIMAL", "FLOAT", "INTEGER", "MAP", "NULL", "NUMBER", "OBJECT",
    "OPTIONAL", "STRING", "TIMESTAMP", "TYPE", "TYPE_NOT_SUPPORTED", "UNION", "ValidationError", "data_validators",
    "get_native_type", "native_types", "register_validator", "valid",
))  # fmt: skip

__getattr__ = moved("plaita.types", "plaita.core.types", _NAMES)


def __dir__() -> list[str]:
    return sorted(_NAMES)
