"""Fields that are written out, and fields whose value is known only at run time."""

from __future__ import annotations

from typing import Any


def is_computed(value: Any) -> bool:
    """Is it an expression, a template, or a list with one in it?"""
    if isinstance(value, str):
        return value.startswith("$") or "{%" in value
    return isinstance(value, list) and any(is_computed(one) for one in value)
