"""A frame: one level of a run with its scope and its cursor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from plaita.base.json import Json
from plaita.engine.expression.scope import ABSENT

if TYPE_CHECKING:
    from plaita.engine.machine import Run
    from plaita.engine.program import CNode, Graph

READY: Final = "r"
HOSTING: Final = "h"
CALLING: Final = "c"
WAITING: Final = "w"
BACKOFF: Final = "b"
FAILED: Final = "f"
CLOSED: Final = "x"

EMPTY: Final[dict[str, Any]] = {}
_ESCAPES = str.maketrans({c: f"%{ord(c):02x}" for c in "%/:|@~#"})


def escape(text: str) -> str:
    """Node ids and branch names inside addresses: the separators are %-escaped."""
    return text.translate(_ESCAPES)


class Frame:
    """``parent`` is the lexical link (scope), ``host`` the control link (who is told at the end).

    ``pc`` is the node that runs or will run next. ``mark`` counts the results of ``nodes`` that are durable: results
    are in insertion order, so the rest is what a delta writes; ``extra_kept`` is the ``extra`` that is durable. A frame
    has one cursor, hence at most one call or wait (``open``), one node deadline (``due``), one wait deadline
    (``wait_due``) and one backoff (``retry_at``).
    """

    __slots__ = (
        "acc", "acc_keys", "attempt", "base", "due", "env", "extra", "extra_kept", "globals", "graph", "hnode",
        "host", "input", "key", "keys", "kids", "last", "limit", "mark", "nodes", "open", "parent", "pc", "pending",
        "redone", "retry_at", "run", "stamp", "state", "visits", "wait_due",
    )  # fmt: skip

    def __init__(self, run: Run, graph: Graph, parent: Frame | None, host: Frame | None, base: str) -> None:
        self.run, self.graph, self.host, self.base = run, graph, host, base
        self.parent = None if graph.apart else parent
        self.hnode: CNode | None = None
        self.key: int | str | None = None
        self.globals: dict[str, Json] = graph.globals
        if graph.apart:
            self.globals = {**graph.globals, "flow_id": graph.flow_id, "run_token": run.execution_id}
        self.env: Mapping[str, str] = run.exposed(graph)
        self.limit: int | None = None
        self.keys: set[str] = set()
        self.kids: dict[int | str, Frame] = {}
        self.acc_keys: set[str] = set()
        self.begin(ABSENT)

    def begin(self, value: Any) -> None:
        """Empty the frame for its first or next round: every field that a round may leave behind is set here."""
        self.input = value
        self.nodes: dict[str, Json] = {}
        self.mark = 0
        self.redone: set[str] | None = None
        self.extra: dict[str, Json] | None = None
        self.extra_kept: dict[str, Json] | None = None
        self.visits: dict[str, int] | None = None
        self.pc: CNode | None = self.graph.start
        self.last: CNode | None = None
        self.state = READY
        self.settle_node()

    def settle_node(self) -> None:
        """Forget everything that belongs to the node the cursor leaves."""
        self.open: str | None = None
        self.pending: dict[str, Json] | None = None
        self.stamp: tuple[int, float, str] | None = None
        self.due: int | None = None
        self.wait_due: int | None = None
        self.retry_at: int | None = None
        self.attempt = 0
        self.acc: Any = None

    @property
    def addr(self) -> str:
        """The stable address: host ids from the root in, visits after ``~``, the round, item or branch after ``:``."""
        return self.base if self.key is None else f"{self.base}:{escape(str(self.key))}"

    @property
    def flow_id(self) -> str | None:
        """Identity of the nearest flow that has one."""
        frame: Frame | None = self
        while frame is not None:
            if frame.graph.flow_id is not None:
                return frame.graph.flow_id
            frame = frame.parent
        return None

    @property
    def last_id(self) -> str | None:
        """The node that finished last in this frame."""
        return None if self.last is None else self.last.id

    @property
    def branch(self) -> Json:
        """Where the last node branched to, ``None`` after a plain node."""
        return self.nodes.get(self.last.id) if self.last is not None and self.last.branching else None

    @property
    def label(self) -> str:
        """The address for people: ``l:0/c``, without visits."""
        steps = []
        frame: Frame = self
        while frame.host is not None and frame.hnode is not None:
            key = "" if frame.key is None else f":{frame.key}"
            steps.append(frame.hnode.id + key)
            frame = frame.host
        return "/".join(reversed(steps))

    def where(self, node_id: str) -> str:
        """The address of a node in this frame, for people."""
        label = self.label
        return f"{label}/{node_id}" if label else node_id

    @property
    def position(self) -> tuple[int, ...]:
        """Where the frame stands in declaration order: node by node, round, item or branch by number."""
        steps: list[int] = []
        frame: Frame = self
        while frame.host is not None and frame.hnode is not None and frame.hnode.host is not None:
            steps += (frame.hnode.host.rank(frame.key), frame.hnode.index)
            frame = frame.host
        return tuple(reversed(steps))

    def visit(self, cn: CNode) -> int:
        """Count an entry into a node that may be entered more than once; 1 for all others."""
        visits = self.visits
        if not cn.counted and (visits is None or cn.id not in visits):
            return 1
        count = 1 if visits is None else visits.get(cn.id, 0) + 1
        self.visits = {**(visits or {}), cn.id: count}
        return count

    def reenter(self, cn: CNode) -> None:
        """A wait or host that ended for good begins again: under the next number, as if the node were entered anew."""
        self.visits = {cn.id: 1, **(self.visits or {})}
        self.open = self.pending = self.acc = self.due = self.wait_due = None
        self.forget()

    def store(self, cn: CNode, value: Json) -> None:
        """Keep a node's result; a result given again on a graph cycle is remembered for the next delta."""
        if cn.cyclic and cn.id in self.nodes:
            if self.redone is None:
                self.redone = set()
            self.redone.add(cn.id)
        self.nodes[cn.id] = value
        self.last = cn

    def forget(self) -> None:
        """What was stored of the host or wait under the cursor goes with the next delta."""
        for key in self.acc_keys:
            self.run.dels[key] = None
        self.acc_keys.clear()

    def leave(self, cn: CNode, value: Json) -> None:
        """The one way out of a node that stopped its frame: store, disarm, go on at ``next``."""
        self.store(cn, value)
        self.settle_node()
        if self.acc_keys:
            self.forget()
        self.state = READY
        self.pc = cn.next


def node_at(frame: Frame) -> CNode:
    """The node under the cursor, in a frame that has not ended."""
    if frame.pc is None:
        raise AssertionError(f"frame {frame.addr!r} has no cursor")
    return frame.pc
