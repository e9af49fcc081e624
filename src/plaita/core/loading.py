"""Reading and compiling flows: from a document to a ``Flow`` that runs, or to everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError

from plaita.base.errors import FlowLoadError
from plaita.base.issues import Issue
from plaita.base.limits import SUBFLOW_DEPTH_MAX
from plaita.base.spelling import fold
from plaita.core.compiling import compile_root
from plaita.core.drafting import deep_fields, draft_node, field_issues, validated
from plaita.core.flow import Flow
from plaita.core.references import Resolver
from plaita.core.text import Document, read_document
from plaita.core.validate import Rule
from plaita.engine.linking import Resolve
from plaita.node.basic import Node
from plaita.node.editing import edits_in_process
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
    raw_nodes = [] if value.get("nodes") is None else value["nodes"]
    if not isinstance(raw_nodes, list):
        issues.append(Issue("error", "bad_field", "$.nodes", "nodes is a list"))
        raw_nodes = []
    header = {k: v for k, v in value.items() if k != "nodes" and v is not None}
    try:
        flow = validated(cls, header)
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
            flow.__dict__["nodes"] = [draft_node(raw, i, registry, issues) for i, raw in enumerate(raw_nodes)]
    finally:
        _registry.reset(token)
        _depth.reset(level)
    flow._raws = [raw if isinstance(raw, dict) else {} for raw in raw_nodes] if flow.nodes else []
    flow._raw, flow._drafted, flow._nodes_registry = value, issues, registry
    return flow


@dataclass(frozen=True, slots=True)
class Reading:
    """How a flow is read: the node types, where flows it refers to come from, whether warnings are errors, and rules
    beside those of the installation."""

    registry: NodeRegistry | None = None
    resolver: Resolver | None = None
    strict: bool = False
    rules: tuple[Rule, ...] = ()


def loaded_text(cls: type[F], content: str, source: str, reading: Reading) -> F:
    """A flow from its text."""
    document = read_document(content, source)
    return loaded(cls, document.value, reading, document)


def loaded(cls: type[F], value: Any, reading: Reading, document: Document | None = None) -> F:
    """A flow from its document, compiled. Raises ``FlowLoadError``."""
    if not value and document is None:
        issue = Issue("error", "empty", "$", "the flow is empty", 'a flow is an object with "nodes"')
        raise FlowLoadError([issue])
    flow = draft(value, reading.registry or get_default_registry(), cls)
    flow._document, flow._resolver, flow._rules = document, reading.resolver, reading.rules
    compile_flow(flow)
    if reading.strict and flow.issues:
        raise FlowLoadError([replace(i, severity="error") for i in flow.issues], document.source if document else "")
    return flow


def compile_flow(flow: Flow) -> None:
    """Compile; warnings become ``flow.issues``. Raises ``FlowLoadError`` when there are errors."""
    _draft_own(flow)
    program, linking = compile_root(flow, _drafts(flow), flow._rules)
    flow._references, flow._missing = linking.references, tuple(dict.fromkeys(linking.missing))
    issues, document = linking.issues, flow._document
    if document is not None:
        issues = [*document.issues, *issues]
    if any(i.severity == "error" for i in issues):
        found = issues if document is None else [placed(issue, document) for issue in issues]
        ordered = sorted(found, key=lambda i: i.severity != "error")
        raise FlowLoadError(ordered, "the flow" if document is None else document.source)
    flow._program, flow._issues, flow._located = program, tuple(issues), False
    below = [(level, list(level.nodes)) for level in levels(flow) if level is not flow]
    flow._compiled = Compiled(edits_in_process(), list(flow.nodes), below)


@dataclass(slots=True)
class Compiled:
    """What a program was made of, to tell whether it still fits."""

    edits: int
    nodes: list[Node]
    below: list[tuple[Flow, list[Node]]]
    """Every sub-flow, and its nodes: a list can be changed without an assignment."""

    def is_stale(self, flow: Flow) -> bool:
        """Was something assigned, or a list of nodes changed, since? Cheap while nothing was."""
        if self.nodes != flow.nodes or any(nodes != level.nodes for level, nodes in self.below):
            return True
        now = edits_in_process()
        if self.edits == now:
            return False
        if any(one.edited > self.edits for level in levels(flow) for one in (level, *level.nodes)):
            return True
        self.edits = now
        return False


def levels(flow: Flow) -> Iterator[Flow]:
    """The flow and every sub-flow in it."""
    work = [flow]
    while work:
        level = work.pop()
        yield level
        for node in level.nodes:
            if isinstance(node, Node):
                work += [sub for _, sub, _ in node.sub_flows() if sub is not None]


def compile_again(flow: Flow) -> None:
    """Compile after something was assigned: what the documents said counts no more, the objects do."""
    flow._program = None
    for level in levels(flow):
        registry = level._nodes_registry or flow._nodes_registry or get_default_registry()
        level._raw, level._raws, level._drafted, level._document = {}, [], [], None
        level._nodes_registry = registry
        draft_nodes(level, registry)
    compile_flow(flow)


def _drafts(flow: Flow) -> Resolve:
    """The flows that a flow refers to, each read once."""
    resolver, registry = flow._resolver, flow._nodes_registry or get_default_registry()
    drafts: dict[tuple[str, str], Flow | None] = {}

    def resolve(flow_id: str, version: str) -> Flow | None:
        wanted = (flow_id, version)
        if wanted not in drafts:
            found = None if resolver is None else resolver(flow_id, version)
            drafts[wanted] = None if found is None else draft(found, registry, Flow)
        return drafts[wanted]

    return resolve


def _draft_own(flow: Flow) -> None:
    """Read the node documents of a flow that was made of objects."""
    if not flow._raws and flow.nodes and flow._nodes_registry is None:
        flow._nodes_registry = get_default_registry()
        draft_nodes(flow, flow._nodes_registry)


def draft_nodes(flow: Flow, registry: NodeRegistry) -> None:
    """Read the nodes of this level that are still documents; it is no edit."""
    if not all(isinstance(node, Node) for node in flow.nodes):
        flow.__dict__["nodes"] = [draft_node(raw, i, registry, flow._drafted) for i, raw in enumerate(flow.nodes)]


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
