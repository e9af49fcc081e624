"""From a flow model to a program: link every level, run every rule, gather every issue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plaita.base.duration import parse_duration_ms
from plaita.base.errors import InputError
from plaita.base.issues import Issue
from plaita.base.limits import SUBFLOW_DEPTH_MAX
from plaita.base.spelling import fold, suggest
from plaita.core.flow import FLOW_KEYS, Flow
from plaita.core.validate import RULES, FlowView, Rule, registered_rules
from plaita.engine.expression import Names, get_default_expression_registry
from plaita.engine.frames import escape
from plaita.engine.linking import Linking, NodeLink, Resolve, mark_cycles, nothing_known
from plaita.engine.program import CNode, Graph, Program
from plaita.engine.steps import cyclic
from plaita.engine.types import Property, parse_property


def compile_root(flow: Flow, resolve: Resolve = nothing_known, rules: Sequence[Rule] = ()) -> tuple[Program, Linking]:
    """A program, and the linking with everything there is to say; with errors the program must not run.

    ``rules`` are applied beside our own and those of the installation.
    """
    linking = Linking(get_default_expression_registry().table(), resolve=resolve)
    linking.chain, linking.rules = (flow,), (*RULES, *registered_rules(), *rules)
    _roots(flow, linking)
    root = _link_level(flow, linking, _Place())
    return Program(root, linking.graphs, tuple(dict.fromkeys(linking.waits)), linking.calls), linking


def _roots(flow: Flow, linking: Linking) -> None:
    """Which roots do the nodes of a flow and of its sub-flows provide? A custom node that declares none opens all."""
    linking.open_roots = False
    provided: set[str] = set()
    work = [flow]
    while work:
        for node in work.pop().nodes:
            for _, sub, _ in node.sub_flows():
                if sub is not None:
                    work.append(sub)
            if node.provides is not None:
                provided |= node.provides
            elif not node.builtin:
                linking.open_roots = True
    linking.extra_roots = frozenset(provided)


def link_sub_flow(flow: Flow, link: NodeLink, field: str, key: str | None) -> Graph:
    """Compile the sub-flow of a node."""
    head = field.split(".")[0].split("[")[0]
    spelled = next((k for k in link.raw if fold(k) == fold(head)), head)
    path = f"{link.path}.{spelled}{field[len(head) :]}"
    step = escape(link.cn.id) + ("" if key is None else f":{escape(key)}")
    entry = f"{link.graph.entry}/{step}"
    hosts = (*link.hosts, (link.cn.type, link.cn.id))
    documented = f"{link.documented}.{spelled}{field[len(head) :]}"
    place = _Place(path, entry, link.label, link.graph, link.names, hosts=hosts, documented=documented)
    return _link_level(flow, link.linking, place)


def link_apart(flow: Flow, link: NodeLink, flow_id: str) -> Graph | None:
    """Compile the flow that a node refers to. Its own problems are told in one issue of the node."""
    linking = link.linking
    if any(_is_same(flow, one) for one in linking.chain):
        around = " -> ".join(str(one.flow_id or "the flow") for one in (*linking.chain, flow))
        link.report("reference_recursive", "flow_id", f"the flow refers to itself: {around}")
        return None
    if len(linking.chain) > SUBFLOW_DEPTH_MAX:
        link.report("too_deep", "flow_id", f"references are nested deeper than {SUBFLOW_DEPTH_MAX}")
        return None
    if len(linking.graphs) > GRAPHS_MAX:
        link.report("too_large", "flow_id", f"with all it refers to the flow has more than {GRAPHS_MAX:,} sub-flows")
        return None
    kept = (linking.issues, linking.chain, linking.open_roots, linking.extra_roots)
    linking.issues, linking.chain = [], (*linking.chain, flow)
    _roots(flow, linking)
    entry = f"{link.graph.entry}/{escape(link.cn.id)}"
    graph = _link_level(flow, linking, _Place("$", entry, link.label, apart=flow_id))
    found = [i for i in linking.issues if i.severity == "error"]
    linking.issues, linking.chain, linking.open_roots, linking.extra_roots = kept
    if found:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        text = f"flow {flow_id!r} does not load: {found[0].path}: {found[0].message}{more}"
        link.report("reference_broken", "flow_id", text, hint=found[0].hint)
        return None
    return graph


def _is_same(flow: Flow, other: Flow) -> bool:
    named = flow.flow_id is not None and flow.flow_id == other.flow_id and flow.version == other.version
    return flow is other or named


_NOTHING = Names(())
GRAPHS_MAX = 5_000
"""Levels of one program: a flow that several others refer to is compiled for each of them."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a level stands: JSON path, entry of its graph, address for people, and what encloses it.

    ``apart``: the id under which it was referred to; nothing encloses it. ``hosts``: type and id of the nodes around.
    """

    path: str = "$"
    entry: str = ""
    label: str = ""
    parent: Graph | None = None
    outer: Names = _NOTHING
    apart: str | None = None
    hosts: tuple[tuple[str, str], ...] = ()
    documented: str = ""


def _link_level(flow: Flow, linking: Linking, place: _Place) -> Graph:
    path, label = place.path, place.label
    graph = Graph(flow.flow_id or place.apart, place.parent, place.entry)
    graph.apart, graph.model = place.apart is not None, flow
    linking.graphs[place.entry] = graph
    linking.issues += [replace(i, path=path + i.path[1:]) for i in flow._drafted]
    _header(flow, graph, linking, path)
    _shells(flow, graph, linking, path)
    names = Names((frozenset(graph.nodes), *place.outer.declared), linking.extra_roots, linking.open_roots)
    links: list[NodeLink] = []
    for i, node in enumerate(flow.nodes):
        cn = graph.nodes[node.id]
        if cn.index != i or node.node_type == "unreadable":
            continue
        raw = flow._raws[i] if i < len(flow._raws) else {}
        inner = f"{label}/{node.id}" if label else node.id
        link = NodeLink(linking, graph, names, cn, f"{path}.nodes[{i}]", raw, inner)
        link.hosts, link.documented = place.hosts, f"{place.documented}.nodes[{node.id}]".removeprefix(".")
        node.link_common(link)
        node.link(link)
        links.append(link)
    targets: dict[str, Sequence[str]] = {
        node.id: [t for _, t in node.targets() if isinstance(t, str)] for node in flow.nodes
    }
    _cycles(graph, targets)
    _rules(flow, linking, place, targets, links)
    return graph


def _header(flow: Flow, graph: Graph, linking: Linking, path: str) -> None:
    graph.globals = dict(flow.global_context or {})
    if flow.flow_id is not None and graph.parent is not None:
        graph.globals["flow_id"] = flow.flow_id
    graph.env_names = tuple(flow.expose_env)
    graph.timeout = None if flow.timeout in ("", None) else parse_duration_ms(flow.timeout)
    for field in ("input_type", "output_type"):
        raw = getattr(flow, field)
        try:
            setattr(graph, field, None if raw is None else parse_property(raw))
        except InputError as e:
            spelled = next((k for k in flow._raw if fold(k) == fold(field)), field)
            linking.issues.append(Issue("error", "bad_type", f"{path}.{spelled}{e.path[1:]}", e.reason))
    if flow.runtime != "python":
        text = f"runtime {flow.runtime!r} is not available; only 'python' is"
        linking.issues.append(Issue("error", "bad_runtime", f"{path}.runtime", text))


def declared(raw: Any) -> Property | None:
    """A declared type, ``None`` when there is none or it is wrong."""
    try:
        return None if raw is None else parse_property(raw)
    except InputError:
        return None


def _shells(flow: Flow, graph: Graph, linking: Linking, path: str) -> None:
    for i, node in enumerate(flow.nodes):
        if node.id in graph.nodes:
            first = graph.nodes[node.id].index
            text = f"node id {node.id!r} is used twice (first at nodes[{first}])"
            linking.issues.append(Issue("error", "duplicate_id", f"{path}.nodes[{i}].id", text, node_id=node.id))
            continue
        cn = CNode(node.id, node.node_type, graph, i)
        cn.model = node
        graph.nodes[node.id] = cn
        if graph.start is None and node.node_type == "start":
            graph.start = cn


def _cycles(graph: Graph, targets: dict[str, Sequence[str]]) -> None:
    mark_cycles(graph, targets)
    for cn in graph.nodes.values():
        if cn.cyclic:
            cn.step = cyclic(cn)
        if cn.host is not None and cn.on_error.retries:
            cn.counted = True


def _rules(
    flow: Flow, linking: Linking, place: _Place, targets: Mapping[str, Sequence[str]], links: list[NodeLink]
) -> None:
    path, entry = place.path, place.entry
    if any(i.path in ("$", "$.nodes") for i in flow._drafted):
        return  # without a list of nodes every rule would complain about the same
    reads: dict[str, list[tuple[str, str]]] = {}
    for link in links:
        for depth, node_id, field in link.reads:
            if depth == 0:
                reads.setdefault(link.cn.id, []).append((node_id, field))
            else:
                text = f"$NODE.{node_id} names no node of this flow or an enclosing one; it is always null"
                hint = suggest(node_id, link.names.declared[0])
                link.report("unknown_node", field, text, hint=hint, severity="warning")
        for field in filter(_becomes_state, link.env_fields if link.cn.model.builtin else ()):
            text = "an environment value becomes part of the stored state"
            link.report("env_in_state", field, text, hint="pass secrets as credential references", severity="warning")
    graph = linking.graphs[entry]
    view = FlowView(
        path,
        flow._raw,
        flow.nodes,
        flow._raws or [{} for _ in flow.nodes],
        targets,
        reads,
        FLOW_KEYS,
        {link.cn.id: link.env_fields for link in links if link.env_fields},
        place.hosts,
        place.documented,
        graph.output_type,
        timed=any(around.timeout is not None for around in _around(graph)),
        exposes=any(around.env_names for around in _around(graph)),
    )
    for rule in linking.rules:
        linking.issues += rule(view)


_STATE_FIELDS = frozenset({"output", "upstream_output", "input", "collection", "initial"})
_HANDLERS = ("error_handler.", "timeout_handler.")


def _becomes_state(field: str) -> bool:
    """Is the value of a field of a built-in node stored: as its result, or as the input of its sub-flow?"""
    head = field.split(".")[0].split("[")[0]
    return head in _STATE_FIELDS or field.startswith(_HANDLERS) or (head == "branches" and field.endswith(".input"))


def _around(graph: Graph) -> Iterator[Graph]:
    """The level and those around it."""
    at: Graph | None = graph
    while at is not None:
        yield at
        at = at.parent
