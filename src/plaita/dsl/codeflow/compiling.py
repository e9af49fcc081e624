"""Python source to the document of a flow. Nothing of the source is executed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from plaita.base.errors import FlowLoadError
from plaita.base.issues import Issue
from plaita.base.limits import SUBFLOW_DEPTH_MAX
from plaita.base.spelling import suggest
from plaita.dsl.codeflow.errors import CodeflowError, Complaints, Refused
from plaita.dsl.codeflow.placing import placed
from plaita.dsl.codeflow.source import Definition, definition_in, definition_of
from plaita.dsl.codeflow.statements import LevelWriter

if TYPE_CHECKING:
    from plaita.core.flow import Flow

NODES_MAX: Final = 20_000
OPTIONS: Final = {
    "input_type": "inputType", "output_type": "outputType", "version": "version", "author": "author", "desc": "desc",
    "timeout": "timeout", "global_context": "globalContext", "expose_env": "exposeEnv", "metadata": "metadata",
}  # fmt: skip
"""What a decorator may say and what a document calls it."""


class Compilation:
    """One source on its way to a document: what all its levels share."""

    def __init__(self, source: str) -> None:
        self.complaints = Complaints(source)
        self._open: list[Definition] = []
        self._nodes = 0

    @property
    def lines(self) -> Sequence[str]:
        """The text of the function that is being compiled."""
        return self._open[-1].lines

    @property
    def constants(self) -> Mapping[str, Any]:
        """Literals at the top of its module."""
        return self._open[-1].constants

    def count(self, node: ast.AST) -> None:
        """One more node. Raises ``CodeflowError`` when there are too many: child flows may double again and again."""
        self._nodes += 1
        if self._nodes > NODES_MAX:
            text = f"the flow has more than {NODES_MAX} nodes"
            self.complaints.add(Refused(node, text, "REFERENCE takes a flow of its own"), self.lines)
            self.complaints.raise_any()

    def nodes(self, definition: Definition, what: str) -> list[dict[str, Any]]:
        """The nodes of a function."""
        self._open.append(definition)
        try:
            _check_parameters(definition, self.complaints)
            body = definition.function.body
            return LevelWriter(self, body).nodes(definition.function, what)
        finally:
            self._open.pop()

    def sub_flow(self, node: ast.expr) -> dict[str, Any]:
        """The document of the child flow that an expression names. Raises ``Refused``."""
        if not isinstance(node, ast.Name):
            raise Refused(node, "a child flow is the name of a @childflow function")
        definition = self._open[-1].child(node.id)
        if definition is None:
            raise Refused(node, f"there is no @childflow {node.id!r}", "define it at the top of the module")
        if any(d.function is definition.function or _same(d, definition) for d in self._open):
            raise Refused(node, f"{node.id!r} contains itself", "REFERENCE(flow_id) or a loop")
        if len(self._open) > SUBFLOW_DEPTH_MAX:
            raise Refused(node, f"child flows are nested deeper than {SUBFLOW_DEPTH_MAX}", "REFERENCE(flow_id)")
        options = definition.options(self.complaints)
        flow = {"flow_id": options["flow_id"]} if options.get("flow_id") else {}
        flow |= {OPTIONS[k]: v for k, v in options.items() if k in OPTIONS and v is not None}
        return {**flow, "nodes": self.nodes(definition, "the child flow")}


def _same(a: Definition, b: Definition) -> bool:
    return a.source == b.source and a.function.lineno == b.function.lineno and a.function.name == b.function.name


def _check_parameters(definition: Definition, complaints: Complaints) -> None:
    arguments = definition.function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    for argument in every:
        if argument.arg != "INPUT":
            hint = f"read the input with INPUT.{argument.arg}"
            complaints.add(Refused(argument, "a flow takes no parameters", hint), definition.lines)


def document_of(definition: Definition, options: Mapping[str, Any], *, read_decorator: bool = True) -> dict[str, Any]:
    """The document of a flow; ``options`` win over the decorator. Raises ``CodeflowError`` with everything wrong."""
    job = Compilation(definition.source)
    given = definition.options(job.complaints) if read_decorator else {}
    given |= {k: v for k, v in options.items() if v is not None}
    flow: dict[str, Any] = {"runtime": "python", "flow_id": given.pop("flow_id", None) or definition.function.name}
    for name, value in given.items():
        if name not in OPTIONS:
            hint = suggest(name, OPTIONS) or f"options: {', '.join(OPTIONS)}"
            at = definition.decorator or definition.function
            job.complaints.add(Refused(at, f"a flow has no {name!r}", hint), definition.lines)
        elif value is not None:
            flow[OPTIONS[name]] = value
    doc = ast.get_docstring(definition.function)
    if doc and "desc" not in flow:
        flow["desc"] = doc
    try:
        flow["nodes"] = job.nodes(definition, "the flow")
    except RecursionError:
        at = definition.function
        job.complaints.add(Refused(at, "the flow is nested too deeply", "put parts into flows"), definition.lines)
    job.complaints.raise_any()
    return flow


def compile_source(src: str, flow_id: str | None = None, **opts: Any) -> dict[str, Any]:
    """The document of the flow in a source: its only ``@flow``, or the one named ``flow_id``.

    ``opts`` win over what the decorator says. Raises ``CodeflowError`` with line and column of everything wrong.
    """
    return document_of(definition_in(src, flow_id, "the source"), opts)


def compile_func(func: Callable[..., Any], flow_id: str | None = None, **opts: Any) -> dict[str, Any]:
    """The document of a function of this program; its source is read, the function is not called."""
    return document_of(definition_of(func), {"flow_id": flow_id, **opts})


def flow_from_source(src: str, flow_id: str | None = None, **opts: Any) -> Flow:
    """The flow in a source. Raises ``CodeflowError``."""
    return loaded(compile_source(src, flow_id, **opts), "the source")


def loaded(document: dict[str, Any], source: str) -> Flow:
    """The flow of a compiled document; what is wrong with it is told with lines of the source."""
    from plaita.core.flow import Flow

    try:
        return Flow.model_validate(document)
    except FlowLoadError as e:
        issues: list[Issue] = placed(e.issues, document)
        raise CodeflowError(issues, source) from None
