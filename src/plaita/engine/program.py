"""What a flow compiles to: graphs of nodes whose ``step`` moves a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from plaita.base.json import Json
from plaita.engine.effects import WaitSpec
from plaita.engine.types import Property

if TYPE_CHECKING:
    from plaita.engine.frames import Frame
    from plaita.engine.hosts import Host

Eval = Callable[[Any], Json]
"""A compiled value: a scope in, a JSON value out."""

Step = Callable[["Frame"], "CNode | None"]
"""Moves a frame by one node; the node that follows in the same frame, or ``None`` when the frame stops here."""


@dataclass(frozen=True, slots=True)
class Handler:
    """What happens when a node fails or times out, after ``retries`` more attempts.

    Delays: ``base_ms * factor ** attempt``, at most ``cap_ms``, and up to ``jitter`` (0 to 1) of it more.
    """

    strategy: Literal["abort", "continue", "continue-with"] = "abort"
    default: Eval | None = None
    code: int | str | None = None
    message: str | None = None
    retries: int = 0
    base_ms: int = 1000
    factor: float = 2.0
    cap_ms: int = 30_000
    jitter: float = 0.0


ABORT = Handler()


class Waiting(Protocol):
    """The waiting half of a node."""

    def spec(self, frame: Frame) -> WaitSpec:
        """Evaluate what to wait for."""

    def matches(self, pending: dict[str, Json], data: Json) -> bool:
        """Does an offered event satisfy the filter?"""

    def resume(self, pending: dict[str, Json], kind: Literal["event", "timeout"], data: Json) -> Json:
        """The node's result."""


class CNode:
    """One compiled node. ``next`` is where plain nodes go; branching nodes choose in their step.

    ``arguments`` evaluates everything a call depends on, to tell whether a repeated call is the same request.
    """

    __slots__ = (
        "arguments", "branching", "counted", "cyclic", "graph", "host", "id", "index", "model", "next", "on_error",
        "on_timeout", "step", "timeout", "type", "waiting",
    )  # fmt: skip

    def __init__(self, node_id: str, node_type: str, graph: Graph, index: int) -> None:
        self.id, self.type, self.graph, self.index = node_id, node_type, graph, index
        self.step: Step = _not_linked
        self.next: CNode | None = None
        self.host: Host | None = None
        self.waiting: Waiting | None = None
        self.on_error, self.on_timeout = ABORT, ABORT
        self.timeout: Eval | int | None = None
        self.arguments: Eval | None = None
        self.branching = self.cyclic = self.counted = False
        self.model: Any = None


def _not_linked(frame: Frame) -> CNode | None:
    raise AssertionError(f"{frame.addr}: step before link")


class Graph:
    """One flow level: the flow, a child flow, the body of a collection node, a branch.

    ``parent`` is the level whose scope it sees. ``apart``: it was referred to, so its frames see no other.
    ``evaluated`` keeps what custom nodes have had evaluated in it, compiled.
    """

    __slots__ = (
        "apart", "entry", "env_names", "evaluated", "flow_id", "globals", "input_type", "model", "nodes", "output_type",
        "parent", "start", "timeout",
    )  # fmt: skip

    def __init__(self, flow_id: str | None, parent: Graph | None, entry: str = "") -> None:
        self.flow_id, self.parent, self.entry = flow_id, parent, entry
        self.nodes: dict[str, CNode] = {}
        self.start: CNode | None = None
        self.globals: dict[str, Json] = {}
        self.env_names: tuple[str, ...] = ()
        self.input_type: Property | None = None
        self.output_type: Property | None = None
        self.timeout: int | None = None
        self.apart = False
        self.model: Any = None
        self.evaluated: dict[str, Eval] = {}


@dataclass(frozen=True, slots=True)
class Program:
    """A runnable flow. ``graphs`` finds every graph by its entry (empty: the flow itself)."""

    root: Graph
    graphs: Mapping[str, Graph]
    waits: tuple[str, ...]
    """Where the flow may wait: addresses without rounds, such as ``l/c/w``."""
    calls: bool
    """Does the flow have effectful nodes?"""
