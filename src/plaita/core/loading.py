"""Reading and compiling flows: from a document to a ``Flow`` that runs, or to everything that is wrong with it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from plaita.base.errors import FlowLoadError
from plaita.base.issues import Issue
from plaita.base.limits import SUBFLOW_DEPTH_MAX
from plaita.base.spelling import fold
from plaita.core.compiling import compile_root
from plaita.core.drafting import deep_fields, draft_node, field_issues
from plaita.core.flow import Flow
from plaita.core.text import Document, read_document
from plaita.node.registry import NodeRegistry, get_default_registry

_registry: ContextVar[NodeRegistry | None] = ContextVar("registry", default=None)
_depth: ContextVar[int] = ContextVar("depth", default=0)

F = TypeVar("F", bound=Flow)


def draft(value: Any, registry: NodeRegistry, cls: type[F]) -> F:
    """Read a document without compiling; problems are kept in the draft, relative to it."""
    issues: list[Issue] = []
    if isinstance(value, str):
        try:
            value = read_document(value, "the sub-flow").value
        except FlowLoadError as e:
            issues += e.issues
            value = {}
    if not isinstance(value, dict):
        issues.append(Issue("error", "not_an_object", "$", f"a flow is an object, not {type(value).__name__}"))
        value = {}
    raw_nodes = value.get("nodes", [])
    if not isinstance(raw_nodes, list):
        issues.append(Issue("error", "bad_field", "$.nodes", "nodes is a list"))
        raw_nodes = []
    header = {k: v for k, v in value.items() if k != "nodes"}
    try:
        flow: F = cls.__pydantic_validator__.validate_python(header)
    except ValidationError as e:
        issues += field_issues(e, header, "$", None)
        flow = cls()
    issues += deep_fields({k: v for k, v in header.items() if fold(k) == "globalcontext"}, "$", None)
    token, level = _registry.set(registry), _depth.set(_depth.get() + 1)
    try:
        if _depth.get() > SUBFLOW_DEPTH_MAX:
            text = f"flows are nested deeper than {SUBFLOW_DEPTH_MAX}"
            issues.append(Issue("error", "too_deep", "$", text))
        else:
            flow.nodes = [draft_node(raw, i, registry, issues) for i, raw in enumerate(raw_nodes)]
    finally:
        _registry.reset(token)
        _depth.reset(level)
    flow._raws = [raw if isinstance(raw, dict) else {} for raw in raw_nodes] if flow.nodes else []
    flow._raw, flow._drafted, flow._nodes_registry = value, issues, registry
    return flow


def loaded_text(cls: type[F], content: str, registry: NodeRegistry | None, source: str, *, strict: bool) -> F:
    """A flow from its text."""
    document = read_document(content, source)
    return loaded(cls, document.value, registry, document, strict=strict)


def loaded(cls: type[F], value: Any, registry: NodeRegistry | None, document: Document | None, *, strict: bool) -> F:
    """A flow from its document, compiled. Raises ``FlowLoadError``."""
    if not value and document is None:
        issue = Issue("error", "empty", "$", "the flow is empty", 'a flow is an object with "nodes"')
        raise FlowLoadError([issue])
    flow = draft(value, registry or get_default_registry(), cls)
    flow._document = document
    compile_flow(flow)
    if strict and flow.issues:
        raise FlowLoadError([replace(i, severity="error") for i in flow.issues], document.source if document else "")
    return flow


def compile_flow(flow: Flow) -> None:
    """Compile; warnings become ``flow.issues``. Raises ``FlowLoadError`` when there are errors."""
    _draft_own(flow)
    program, issues = compile_root(flow)
    document = flow._document
    if document is not None:
        issues = [*document.issues, *issues]
    if any(i.severity == "error" for i in issues):
        found = issues if document is None else [placed(issue, document) for issue in issues]
        ordered = sorted(found, key=lambda i: i.severity != "error")
        raise FlowLoadError(ordered, "the flow" if document is None else document.source)
    flow._program, flow._issues = program, tuple(issues)


def _draft_own(flow: Flow) -> None:
    """Read the node documents of a flow that was made of objects."""
    if not flow._raws and flow.nodes and flow._nodes_registry is None:
        registry = get_default_registry()
        flow._nodes_registry = registry
        flow.nodes = [draft_node(raw, i, registry, flow._drafted) for i, raw in enumerate(flow.nodes)]


def placed(issue: Issue, document: Document) -> Issue:
    """An issue with its line and column in the text; one about the text itself has them already."""
    if issue.line is not None:
        return issue
    place = document.locate(issue.path)
    message = issue.message
    if issue.column is not None:
        message = f"{message} (at character {issue.column} of the expression)"
    line, column = (None, None) if place is None else (place[0], place[1])
    return Issue(issue.severity, issue.code, issue.path, message, issue.hint, issue.node_id, line, column)


def read_sub_flow(value: Any) -> Flow:
    """A flow inside a node, read with the registry of the flow around it."""
    if isinstance(value, Flow):
        _draft_own(value)
        return value
    return draft(value, _registry.get() or get_default_registry(), Flow)
