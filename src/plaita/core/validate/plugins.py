"""Rules of an installation beside our own, in the documented shape and in ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from plaita.base.errors import FlowLoadError
from plaita.base.issues import Issue
from plaita.base.spelling import suggest
from plaita.core.validate.view import FlowView
from plaita.engine.expression import get_default_expression_registry

if TYPE_CHECKING:
    from plaita.core.flow import Flow

Rule: TypeAlias = Callable[[FlowView], Iterator[Issue]]

_registered: list[Rule] = []


def register_rule(rule: Rule) -> Rule:
    """Apply a rule to every flow that this process loads from now on; usable as a decorator."""
    _registered.append(rule)
    return rule


def unregister_rule(rule: Rule) -> None:
    """Apply it no more; an unknown one is ignored."""
    _registered[:] = [known for known in _registered if known is not rule]


def registered_rules() -> tuple[Rule, ...]:
    """Rules registered by the installation."""
    return tuple(_registered)


@dataclass(frozen=True)
class FlowIRGraph:
    """The level a documented rule looks at: documents of its nodes, and where it stands.

    ``path`` is empty for the flow itself; ``ancestors`` are ``(type, id)`` of the nodes around it, outermost first.
    """

    path: str
    nodes: Sequence[Mapping[str, Any]]
    ancestors: tuple[tuple[str, str], ...]
    reachable_from_start: frozenset[str]
    start_node: Mapping[str, Any] | None

    @cached_property
    def ids(self) -> frozenset[str]:
        """Ids of its nodes."""
        return frozenset(str(node.get("id")) for node in self.nodes)

    @property
    def has_start(self) -> bool:
        """Is there an entry?"""
        return self.start_node is not None

    @property
    def host_type(self) -> str | None:
        """Type of the node around this level."""
        return self.ancestors[-1][0] if self.ancestors else None

    @property
    def host(self) -> str | None:
        """Id of the node around this level."""
        return self.ancestors[-1][1] if self.ancestors else None

    @property
    def in_childflow_subtree(self) -> bool:
        """Is this a sub-flow?"""
        return bool(self.ancestors)


FlowIRRule: TypeAlias = Callable[[dict[str, Any], str, FlowIRGraph], "str | None"]
"""Document of a node, its path (``nodes[c].childFlow.nodes[e]``) and its level in; a complaint or ``None`` out."""


class FlowIRValidationError(FlowLoadError, ValueError):
    """A flow that ``validate_flow_ir`` refuses. ``path`` and ``message`` are those of the first of ``issues``."""

    @property
    def path(self) -> str:
        """Where the first problem is."""
        return self.issues[0].path

    @property
    def message(self) -> str:
        """What it is."""
        return self.issues[0].message


def of_documents(rule: FlowIRRule) -> Rule:
    """A documented rule as one of ours: its complaints are errors with the code ``rule``."""

    def apply(view: FlowView) -> Iterator[Issue]:
        documents = [dict(raw) or {"id": node.id, "type": node.node_type} for raw, node in _pairs(view)]
        start = next((d for d in documents if d.get("type") == "start"), None)
        level = FlowIRGraph(view.place, documents, view.hosts, view.reached, start)
        for i, document in enumerate(documents):
            place = f"{view.place}.nodes[{document.get('id')}]".removeprefix(".")
            complaint = rule(document, place, level)
            if complaint:
                yield Issue("error", "rule", view.path_of(i), complaint, "", str(document.get("id")))

    return apply


def _pairs(view: FlowView) -> Iterator[tuple[Mapping[str, Any], Any]]:
    for i, node in enumerate(view.nodes):
        yield (view.raws[i] if i < len(view.raws) else {}), node


def forbid_node_types_in_childflow(forbidden: Iterable[str], *, message: str | None = None) -> FlowIRRule:
    """A documented rule: these types are not allowed inside sub-flows."""
    types = frozenset(forbidden)

    def rule(node: dict[str, Any], path: str, graph: FlowIRGraph) -> str | None:
        if not graph.in_childflow_subtree or node.get("type") not in types:
            return None
        around = " > ".join(f"{kind}({node_id})" for kind, node_id in graph.ancestors)
        return message or f"nodes of type {node['type']!r} are not allowed in sub-flows (inside {around})"

    return rule


def unknown_expression_functions(registry: Any = None) -> FlowIRRule:
    """A documented rule: only functions of this registry are called (default: that of the process)."""
    known = frozenset((registry or get_default_expression_registry()).table())

    def rule(node: dict[str, Any], path: str, graph: FlowIRGraph) -> str | None:
        for name in _called(node):
            if name not in known:
                return f"unknown function $F.{name}; {suggest(name, known)}".rstrip("; ")
        return None

    return rule


def _called(value: Any) -> Iterator[str]:
    match value:
        case str():
            for part in value.split("$F.")[1:]:
                yield part[: next((i for i, c in enumerate(part) if not (c.isalnum() or c == "_")), len(part))]
        case list():
            for item in value:
                yield from _called(item)
        case dict():
            for key, item in value.items():
                if key not in ("childFlow", "child_flow", "branches"):
                    yield from _called(item)


def validate_flow_ir(
    data: dict[str, Any], *, recursive: bool = True, path: str = "", rules: Iterable[FlowIRRule] | None = None
) -> None:
    """Check a flow document with all our rules and these. Raises ``FlowIRValidationError`` with everything found.

    ``recursive=False`` leaves out what is wrong inside sub-flows; ``path`` takes the place of ``$`` in the issues.
    """
    try:
        build_flow(data, rules=rules)
    except FlowIRValidationError as e:
        found = [i for i in e.issues if recursive or i.path.count(".nodes[") <= 1]
        if any(i.severity == "error" for i in found):
            raise FlowIRValidationError([replace(i, path=(path or "$") + i.path[1:]) for i in found]) from None


def build_flow(data: dict[str, Any], *, rules: Iterable[FlowIRRule] | None = None, recursive: bool = True) -> Flow:
    """The flow of a document that all our rules and these accept. Raises ``FlowIRValidationError``.

    A flow cannot be built with a broken sub-flow, so ``recursive`` changes nothing here.
    """
    from plaita.core.flow import Flow

    try:
        return Flow.model_validate(data, rules=tuple(of_documents(rule) for rule in rules or ()))
    except FlowLoadError as e:
        raise FlowIRValidationError(e.issues) from None
