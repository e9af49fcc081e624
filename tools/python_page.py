"""The reference page of the Python API: what to import, how it is called, what it answers. Made from the docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from textwrap import dedent
from typing import Any, Final

from pydantic import BaseModel

from plaita.base.errors import PlaitaError
from tools.page_parts import page, table

PARTS: Final = {
    "Running": ("plaita", "Flow FlowExecution ExecutionMode Runtime parse parse_and_run"),
    "Executions and tasks": ("plaita.runtime.runtime", "Execution HumanTask"),
    "Nodes": ("plaita", "Node NodeRegistry get_default_registry"),
    "What a node sees": ("plaita.core.calls", "NodeExecution"),
    "Callbacks": ("plaita", "FlowCallback CallbackManager LoggerCallback"),
    "Expressions": (
        "plaita.core.expression",
        "ExpressionEvaluator ExpressionRegistry FunctionCategory get_default_expression_registry",
    ),
    "Rules": (
        "plaita.core.validate",
        "register_rule unregister_rule validate_flow_ir build_flow forbid_node_types_in_childflow "
        "unknown_expression_functions FlowIRGraph FlowIRValidationError",
    ),
    "Tests": ("plaita.testing", "FlowTest FlowRun assert_survives_crashes"),
    "Storages": (
        "plaita.storage",
        "ExecutionState ExecutionStorage FlowStorage MemoryExecutionStorage MemoryFlowStorage OpenedStore "
        "StoreExecutionStorage StoreFlowStorage RedisExecutionStorage RedisFlowStorage",
    ),
    "Tasks on Redis": ("plaita.server.task_queue", "enqueue_task RedisStreamTaskQueue"),
    "Events": (
        "plaita.event",
        "Event EventSubscription EventBus InMemoryEventBus RetryPolicy event_handler get_default_event_bus "
        "set_default_event_bus",
    ),
}
"""Headings, the module to import from, and the names."""
INTRO: Final = (
    "What programs import. Errors have a [page of their own](errors/index.md), node classes stand under "
    "[Nodes](nodes.md). An asynchronous twin of a method begins with `a` and does the same in the running loop."
)
_WIDE: Final = 100
_INNER: Final = frozenset({"model_post_init", "link_apart", "link_under", "link", "link_common"})
"""Public for other parts of the package only."""


def python_page(notice: str) -> str:
    """The whole page."""
    parts = [notice, "# Python", INTRO]
    for heading, (module, names) in PARTS.items():
        parts += [f"## {heading}", f"`from {module} import …`"]
        for name in names.split():
            parts += _entry(name, getattr(import_module(module), name))
    return page(parts)


def _entry(name: str, thing: Any) -> Iterator[str]:
    yield f"### {name}"
    if inspect.isclass(thing):
        if not issubclass(thing, Enum | PlaitaError):
            yield _code(name, thing)
        yield _words(thing)
        rows = list(_fields(thing)) if issubclass(thing, BaseModel) else list(_members(thing))
        if issubclass(thing, Enum):
            rows = [(f"`{member.name}`", f"`{member.value}`") for member in thing]
        methods = list(_methods(thing))
        if rows:
            yield table("name", "what it is", rows=rows)
        if methods:
            yield table("method", "what it does", rows=methods)
    else:
        yield _code(name, thing)
        yield _words(thing)


def _code(name: str, thing: Any) -> str:
    return f"```python\n{_called(name, thing)}\n```"


def _called(name: str, thing: Any) -> str:
    """Name and parameters, one a line when they are many."""
    if inspect.isclass(thing) and issubclass(thing, BaseModel):
        return f"{name}(…)"
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return f"{name}(…)"
    shown = _plain(f"{name}{signature}")
    if len(shown) <= _WIDE:
        return shown
    parameters = ",\n    ".join(_plain(str(p)) for p in signature.parameters.values())
    answer = "" if signature.return_annotation is inspect.Signature.empty else f" -> {signature.return_annotation}"
    return f"{name}(\n    {parameters},\n){_plain(answer)}"


def _plain(text: str) -> str:
    """Without quotes around annotations, and without addresses of objects."""
    text = re.sub(r"<(?:function|class|object) ([^ >]*)[^>]*>", r"\1", text)
    return re.sub(r"'([^']*)'", r"\1", text)


def _words(thing: Any) -> str:
    """The docstring as Markdown; indented blocks in it are code."""
    text = inspect.cleandoc(thing.__doc__ or "").replace("``", "`")
    return re.sub(r"(?m)^(?:    .*\n?)+", lambda m: f"```python\n{dedent(m[0]).strip()}\n```\n", text)


def _first(thing: Any) -> str:
    paragraph = inspect.cleandoc(inspect.getdoc(thing) or "").split("\n\n")[0]
    return " ".join(paragraph.replace("``", "`").split())


def _methods(cls: type) -> Iterator[tuple[str, str]]:
    own = [c for c in cls.__mro__ if c.__module__.startswith("plaita") and not c.__name__.startswith("_")]
    seen: set[str] = set()
    for base in own:
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen or name in _INNER or not _is_method(member):
                continue
            seen.add(name)
            if inspect.getdoc(member):
                yield f"`{_short(name, member)}`", _first(member)


def _is_method(member: Any) -> bool:
    return inspect.isfunction(member) or isinstance(member, classmethod | staticmethod)


def _short(name: str, member: Any) -> str:
    function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]
    names = [
        f"{'*' if p.kind is p.VAR_POSITIONAL else '**' if p.kind is p.VAR_KEYWORD else ''}{p.name}" for p in parameters
    ]
    return f"{name}({', '.join(names)})"


def _members(cls: type) -> Iterator[tuple[str, str]]:
    for base in cls.__mro__:
        for name, member in vars(base).items():
            if isinstance(member, property) and not name.startswith("_") and inspect.getdoc(member):
                yield f"`{name}`", _first(member)


def _fields(cls: type[BaseModel]) -> Iterator[tuple[str, str]]:
    for name, info in cls.model_fields.items():
        annotation = _plain(inspect.formatannotation(info.annotation)).replace("typing.", "")
        made = None if info.default_factory is None else info.get_default(call_default_factory=True, validated_data={})
        plain = info.default if info.default_factory is None else made if isinstance(made, list | dict) else "…"
        default = "required" if info.is_required() else f"`{plain!r}`" if plain != "…" else "made anew"
        yield f"`{name}`", f"`{annotation}`, {default}"
