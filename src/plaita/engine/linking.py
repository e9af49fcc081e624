"""From node models to a graph of compiled nodes: what a node may ask for while it links, and the graph's cycles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from plaita.base.issues import Issue
from plaita.base.json import Json
from plaita.base.spelling import fold, suggest
from plaita.engine.conditions import compile_condition
from plaita.engine.expression import Compiled, FunctionTable, Names, compile_value
from plaita.engine.program import CNode, Eval, Graph

if TYPE_CHECKING:
    from collections.abc import Callable

Resolve: TypeAlias = "Callable[[str, str], Any]"
"""The flow of an id and a version (empty: the latest), or ``None``."""


def nothing_known(flow_id: str, version: str) -> None:
    """The resolver of a flow that stands alone."""
    return


LOOP_ROOTS = frozenset({"LOOP-ITEM", "LOOP-INDEX", "LOOP-RESULT"})


@dataclass(slots=True)
class Linking:
    """State of one load, shared by all its graphs. ``waits`` collects where the flow may wait.

    ``references`` are the flows that were found by id and wanted version (empty: the latest), ``missing`` those that
    were not; ``chain`` the flows that referred to the one being linked. ``rules`` look at every level that is linked.
    """

    functions: FunctionTable
    issues: list[Issue] = field(default_factory=list)
    graphs: dict[str, Graph] = field(default_factory=dict)
    waits: list[str] = field(default_factory=list)
    calls: bool = False
    open_roots: bool = False
    extra_roots: frozenset[str] = frozenset()
    resolve: Resolve = nothing_known
    references: dict[tuple[str, str], Any] = field(default_factory=dict)
    missing: list[tuple[str, str]] = field(default_factory=list)
    chain: tuple[Any, ...] = ()
    rules: tuple[Any, ...] = ()


@dataclass(slots=True)
class NodeLink:
    """What one node sees while it links. ``path`` is its JSON path, ``raw`` the document it came from.

    ``label`` is its address without rounds (``l/c/w``). ``reads`` gathers the results it relies on in its own flow
    (depth 0) or that no flow declares (-1), ``env_fields`` the fields that read ``$ENV``. ``hosts`` are type and id of
    the nodes around it, ``documented`` its documented path (``nodes[c].childFlow.nodes[e]``).

    Every problem is an issue in ``linking``; what comes back is usable enough to go on and find the rest.
    """

    linking: Linking
    graph: Graph
    names: Names
    cn: CNode
    path: str
    raw: dict[str, Any]
    label: str
    reads: list[tuple[int, str, str]] = field(default_factory=list)
    env_fields: list[str] = field(default_factory=list)
    hosts: tuple[tuple[str, str], ...] = ()
    documented: str = ""

    def value(self, raw: Json, field_name: str, *, loop: bool = False) -> Eval:
        """Compile a field's value; a value without expressions costs nothing at run time."""
        return self.compiled(raw, field_name, loop=loop).run

    def compiled(self, raw: Json, field_name: str, *, loop: bool = False) -> Compiled:
        """The same with what is known of the value."""
        names = self._loop_names() if loop else self.names
        return self._found(compile_value(raw, names, self.linking.functions), raw, field_name)

    def condition(self, raw: Json, field_name: str, *, loop: bool = False) -> Callable[[Any], bool]:
        """Compile a condition or a group."""
        names = self._loop_names() if loop else self.names
        return self._found(compile_condition(raw, names, self.linking.functions), raw, field_name).run

    def _found(self, compiled: Compiled, raw: Json, field_name: str) -> Compiled:
        for depth, node_id in compiled.nodes:
            if depth < 0 or (depth == 0 and (depth, node_id) in compiled.relied):
                self.reads.append((depth, node_id, field_name))
        if "ENV" in compiled.roots:
            self.env_fields.append(field_name)
        for f in compiled.findings:
            where = f"{field_name}{f.path}"
            # A value can be too deep without any expression in it.
            code = "too_deep" if f.code == "expression_too_large" and not isinstance(raw, str) else f.code
            self.report(code, where, f.message, hint=f.hint, severity=f.severity, column=f.column)
        return compiled

    def _loop_names(self) -> Names:
        return replace(self.names, extra_roots=self.names.extra_roots | LOOP_ROOTS)

    def target(self, node_id: object, field_name: str) -> CNode:
        """The node a field names; a name that leads nowhere is an issue and the node itself comes back."""
        found = self.graph.nodes.get(node_id) if isinstance(node_id, str) else None
        if found is None:
            self.report(
                "dangling_next",
                field_name,
                f"node {self.cn.id!r} leads to {node_id!r}, which is not a node of this flow",
                hint=suggest(str(node_id), self.graph.nodes) or f"nodes: {', '.join(list(self.graph.nodes)[:12])}",
            )
            return self.cn
        return found

    def report(
        self,
        code: str,
        field_name: str,
        message: str,
        *,
        hint: str = "",
        severity: Any = "error",
        column: int | None = None,
    ) -> None:
        """Add an issue about a field, under the spelling the document uses."""
        head = field_name.split(".")[0].split("[")[0]
        spelled = next((k for k in self.raw if fold(k) == fold(head)), head)
        path = f"{self.path}.{spelled}{field_name[len(head) :]}" if field_name else self.path
        self.linking.issues.append(Issue(severity, code, path, message, hint, self.cn.id, None, column))


def mark_cycles(graph: Graph, edges: dict[str, Sequence[str]]) -> None:
    """Find the nodes on cycles (Tarjan, without recursion): they may be entered again, so visits are counted."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in graph.nodes:
        if root in index:
            continue
        work: list[tuple[str, Iterable[str]]] = [(root, iter(edges.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in graph.nodes:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(edges.get(target, ()))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    _pop_component(graph, node, edges, stack, on_stack)


def _pop_component(
    graph: Graph, node: str, edges: dict[str, Sequence[str]], stack: list[str], on_stack: set[str]
) -> None:
    component = []
    while True:
        member = stack.pop()
        on_stack.discard(member)
        component.append(member)
        if member == node:
            break
    if len(component) > 1 or node in edges.get(node, ()):
        for member in component:
            graph.nodes[member].cyclic = graph.nodes[member].counted = True
