"""Documented names under an older module: they are the same objects, and asking for one warns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def moved(module: str, home: str, names: frozenset[str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module whose names live in another one; importing it says nothing."""

    def lookup(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is deprecated: use {home}.{name}", DeprecationWarning, stacklevel=2)
        return getattr(import_module(home), name)

    return lookup


def from_homes(module: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module whose names, by the module they live in, are imported when asked for."""
    places = {name: home for home, names in homes.items() for name in names}

    def lookup(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return lookup
