"""Small values that are made by the thousand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """A dataclass with slots that type checkers take for frozen. At run time it is not: a frozen one sets each field
    through a call, which makes it several times slower to build."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
