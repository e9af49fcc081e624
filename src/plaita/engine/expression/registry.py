"""Where functions are registered: the documented ``ExpressionRegistry`` and the default one of the process."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from plaita.base.errors import InputError
from plaita.base.json import Json, admit
from plaita.engine.expression.function import FunctionCategory, FunctionSpec, FunctionTable
from plaita.engine.expression.functions import BUILTIN_FUNCTIONS
from plaita.engine.values import OperationError, copied

_NAME = re.compile(r"[^\W\d]\w*")


class ExpressionRegistry:
    """The functions that expressions may call. A new registry is empty."""

    def __init__(self) -> None:
        self._functions: dict[str, FunctionSpec] = {}

    def register(
        self,
        name: str,
        func: Callable[..., Any],
        category: FunctionCategory | str,
        *,
        has_side_effects: bool = False,
        fresh_producer: bool = False,
        description: str = "",
        override: bool = False,
    ) -> None:
        """Add a function. It gets copies of its arguments; its result must be JSON.

        ``has_side_effects`` and ``fresh_producer`` are accepted and change nothing: every function is called exactly
        once an evaluation, and no argument can alias the state. Raises ``ValueError`` for a name that is taken
        (unless ``override``) or cannot be written, and ``TypeError`` for something that cannot be called by position.
        """
        del has_side_effects, fresh_producer
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a function: letters, digits and _ only")
        if name in self._functions and not override:
            raise ValueError(f"the function {name!r} is registered already; say override=True to replace it")
        if inspect.iscoroutinefunction(func):
            raise TypeError(f"the function {name!r} must be a plain function, not a coroutine")
        low, high = _arity(name, func)
        self._functions[name] = FunctionSpec(
            name, _isolated(func), FunctionCategory(category), low, high, description=description or _summary(func)
        )

    def unregister(self, name: str) -> None:
        """Remove a function; raises ``KeyError`` when it is not there."""
        del self._functions[name]

    def table(self) -> FunctionTable:
        """A snapshot for the compiler: what is registered later does not change it."""
        return MappingProxyType(self._functions.copy())

    def names(self, category: FunctionCategory | str | None = None) -> list[str]:
        """The registered names in order, of one category or of all."""
        return [n for n, spec in sorted(self._functions.items()) if category is None or spec.category == category]

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __len__(self) -> int:
        return len(self._functions)

    def __bool__(self) -> bool:
        """A registry is something even when it is empty: it stands for itself, not for the default one."""
        return True

    @classmethod
    def with_builtins(cls) -> ExpressionRegistry:
        """A registry that holds the documented functions."""
        registry = cls()
        registry._functions.update(BUILTIN_FUNCTIONS)
        return registry


@functools.cache
def get_default_expression_registry() -> ExpressionRegistry:
    """The registry of the process: the documented functions and whatever was registered since."""
    return ExpressionRegistry.with_builtins()


def _isolated(func: Callable[..., Any]) -> Callable[..., Json]:
    def call(*arguments: Json) -> Json:
        try:
            result = func(*[copied(argument) for argument in arguments])
        except Exception as e:
            raise OperationError(f"failed: {type(e).__name__}: {e}") from e
        try:
            return admit(result, "the result")
        except InputError as e:
            raise OperationError(f"gave a value that is not JSON: {e}") from None

    return call


def _arity(name: str, func: Callable[..., Any]) -> tuple[int, int | None]:
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):  # some callables written in C have no signature
        return 0, None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters):
        raise TypeError(f"the function {name!r} has a required keyword argument; arguments are positional")
    low = sum(p.default is p.empty for p in positional)
    return low, None if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional)


def _summary(func: Callable[..., Any]) -> str:
    return (inspect.getdoc(func) or "").partition("\n")[0]
