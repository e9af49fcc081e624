"""Documented names that a release does not have: asking for one says so, and what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from plaita.base.errors import NotInRelease

TIMERS: Final = ("a worker fires the delays of its store itself", "start plaita worker and no service beside it")
CONSOLE: Final = ("the console comes later", "read flows with Flow.from_file, or plaita flows")
TRACING: Final = ("tracing by Langfuse is not part of it", "write a FlowCallback")


def absent(module: str, **names: tuple[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module that lacks those names; each has its reason and what to use instead.

    Asking for one raises ``NotInRelease``, which is an ``ImportError``; any other unknown name is an
    ``AttributeError``.
    """

    def lookup(name: str) -> Any:
        refuse(module, name, names)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return lookup


def refuse(module: str, name: str, names: dict[str, tuple[str, str]]) -> None:
    """Raises ``NotInRelease`` when the name is one of those."""
    if name in names:
        why, hint = names[name]
        raise NotInRelease(f"{module}.{name} is not available in this release: {why}", hint)
