"""``@flow`` and ``@childflow``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, overload

from plaita.core.flow import Flow
from plaita.core.imports import import_all, named_imports
from plaita.node.basic import Node
from plaita.node.registry import get_default_registry


class ChildFlow:
    """A function that other flows run: ``CHILD(name)``, a branch of ``PARALLEL``, the body of ``MAP(…, flow=name)``."""

    is_child_flow = True

    def __init__(self, function: Callable[..., Any], flow_id: str | None = None, desc: str | None = None) -> None:
        self.function, self.flow_id, self.desc = function, flow_id, desc
        self.__name__ = getattr(function, "__name__", "child")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.__name__} is a child flow: use it inside of a flow, x = CHILD({self.__name__})")


@overload
def childflow(flow_id: Callable[..., Any], /) -> ChildFlow: ...
@overload
def childflow(
    flow_id: str | None = None, *, desc: str | None = None, **options: Any
) -> Callable[[Callable[..., Any]], ChildFlow]: ...
def childflow(flow_id: Any = None, *, desc: str | None = None, **options: Any) -> Any:
    """Make a function a child flow: ``@childflow`` or ``@childflow("name")``. The function is never called.

    ``options`` are those of ``flow``.
    """
    if callable(flow_id):
        return ChildFlow(flow_id)
    return lambda function: ChildFlow(function, flow_id, desc)


@overload
def flow(flow_id: Callable[..., Any], /) -> Flow: ...
@overload
def flow(
    flow_id: str | None = None,
    *,
    desc: str | None = None,
    version: str | None = None,
    author: str | None = None,
    timeout: Any = None,
    global_context: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    input_type: Any = None,
    output_type: Any = None,
    expose_env: list[str] | None = None,
) -> Callable[[Callable[..., Any]], Flow]: ...
def flow(
    flow_id: Any = None,
    *,
    desc: str | None = None,
    version: str | None = None,
    author: str | None = None,
    timeout: Any = None,
    global_context: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    input_type: Any = None,
    output_type: Any = None,
    expose_env: list[str] | None = None,
) -> Any:
    """Make a function a ``Flow``: ``@flow`` or ``@flow("order")``. Its source is compiled, it is never called.

    What ``metadata`` names in ``imports`` is imported first; paths are beside the file of the function. Raises
    ``CodeflowError`` with line and column of everything that cannot be part of a flow.
    """
    options = {
        "desc": desc, "version": version, "author": author, "timeout": timeout, "global_context": global_context,
        "metadata": metadata, "input_type": input_type, "output_type": output_type, "expose_env": expose_env,
    }  # fmt: skip

    def decorate(function: Callable[..., Any]) -> Flow:
        from plaita.dsl.codeflow.compiling import document_of, loaded
        from plaita.dsl.codeflow.source import definition_of

        import_all(named_imports(metadata, Path(function.__code__.co_filename).parent))
        _register_nodes(function)
        definition = definition_of(function)
        named = flow_id if isinstance(flow_id, str) else None
        return loaded(document_of(definition, {"flow_id": named, **options}, read_decorator=False), definition.source)

    return decorate(flow_id) if callable(flow_id) else decorate


def _register_nodes(function: Callable[..., Any]) -> None:
    """Node classes that the module of the flow knows can be called in it."""
    registry = get_default_registry()
    for value in list(getattr(function, "__globals__", {}).values()):
        if isinstance(value, type) and issubclass(value, Node) and value.node_type and value.node_type not in registry:
            registry.register(value)
