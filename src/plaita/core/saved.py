"""The documented context of a stored run, and a stored run from a documented context.

Unlike ``plaita.core.checkpoint`` the first direction needs no program: what a process cannot load it can still show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plaita.base.errors import FlowLoadError, NotSupported
from plaita.base.json import Json, decode
from plaita.base.moment import LATEST_MS
from plaita.core.arming import arm_of
from plaita.core.checkpoint import FRAMES, run_of
from plaita.core.closure import open_closure
from plaita.core.flow import Flow
from plaita.engine.delta import Cursor, take_delta
from plaita.engine.effects import Opened
from plaita.engine.frames import WAITING
from plaita.engine.machine import Conditions, Run, next_due
from plaita.engine.program import Program
from plaita.ports.runs import Arm


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose context it is, and the input it began with."""

    execution_id: str
    flow_id: str
    input: Json


def loadable(document: bytes | None) -> Flow | None:
    """The flow of a stored definition, ``None`` when it is missing or this process cannot load it."""
    try:
        return None if document is None else open_closure(document)
    except FlowLoadError:
        return None


def context_of_frames(frames: Mapping[str, bytes], who: Identity, flow: Flow | None) -> dict[str, Any]:
    """The context of a run from its frame keys; without ``flow`` the flow's own globals and the branch are missing."""
    results = sorted((decode(v)[0], k[2:], decode(v)[1]) for k, v in frames.items() if k.startswith("n|"))
    nodes = {node_id: value for _, node_id, value in results}
    cursor = Cursor(*decode(frames["f"])) if "f" in frames else None
    last = None if cursor is None else cursor.last
    if cursor is not None and cursor.node is not None and cursor.state == WAITING and "a" in frames:
        last = cursor.node
        pending = decode(frames["a"])
        nodes[last] = {**pending, "subscription_id": cursor.open} if isinstance(pending, dict) else pending
    context: dict[str, Any] = {
        "$INPUT": who.input,
        "$NODE": nodes,
        "$GLOBAL": {**_globals(flow), "flow_id": who.flow_id, "run_token": who.execution_id},
        "$PARENT": {},
        "$ENV": {},
        "$FLOW_ID": who.flow_id,
        "$EXECUTION_ID": who.execution_id,
        "$LAST_NODE": last,
        "$BRANCH": nodes.get(last or "") if _branches(flow, last) else None,
        "EXPRESS_PREFIX": "$",
        **{f"${name}": value for name, value in (decode(frames["x"]) if "x" in frames else {}).items()},
    }
    rest = {k: decode(v) for k, v in frames.items() if not k.startswith("n|") and k != "x"}
    return {**context, FRAMES: rest} if rest else context


def pending_of(frames: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """The state of each open wait, by its id, from the frame keys of a run."""
    found: dict[str, dict[str, Any]] = {}
    for key, raw in frames.items():
        cursor = Cursor(*decode(raw)) if key.startswith("f") else None
        if cursor is not None and cursor.state == WAITING and cursor.open:
            pending = decode(frames.get(f"a{key[1:]}", b"null"))
            found[cursor.open] = pending if isinstance(pending, dict) else {}
    return found


def _globals(flow: Flow | None) -> dict[str, Json]:
    return {} if flow is None else dict(flow.global_context or {})


def _branches(flow: Flow | None, node_id: str | None) -> bool:
    node = None if flow is None or node_id is None else flow.find_node_by_id(node_id)
    return node is not None and node.branching


@dataclass(frozen=True, slots=True)
class Kept:
    """A run to be stored: all its frame keys, its open waits, and the earliest time somebody must look."""

    frames: dict[str, bytes]
    arms: tuple[Arm, ...]
    due_ms: int | None


def kept_run(program: Program, context: Mapping[str, Any], now_ms: int) -> Kept:
    """The run that a documented context stands for. Raises ``InputError`` for one that makes no sense.

    A wait is armed anew: its time counts from now when the context does not say how much is left.
    """
    conditions = Conditions(str(context.get("$EXECUTION_ID") or ""), {}, durable=True)
    run, frames = run_of(program, conditions, context, now_ms)
    run.now_ms = now_ms
    arms = tuple(_arm(run, wait_id) for wait_id in run.waits)
    for key, value in take_delta(run).items():
        if value is not None:
            frames[key] = value
    return Kept(frames, arms, next_due(run))


def _trigger(pending: Json, deadline_ms: int) -> int:
    """A delay that had begun ends when it would have ended."""
    config = pending.get("service_config") if isinstance(pending, dict) else None
    at = config.get("trigger_timestamp") if isinstance(config, dict) else None
    return at if type(at) is int and 0 <= at <= LATEST_MS else deadline_ms


def _arm(run: Run, wait_id: str) -> Arm:
    frame = run.waits[wait_id]
    cn = frame.pc
    if cn is None or cn.waiting is None:
        raise NotSupported(f"the wait {wait_id} belongs to another execution", "let that execution end first")
    spec = cn.waiting.spec(frame)
    if frame.wait_due is None and spec.deadline_ms is not None:
        frame.wait_due = _trigger(frame.pending, spec.deadline_ms)
        run.arm(frame, frame.wait_due)
        run.touched[frame] = None
    times = [at for at in (frame.due, frame.wait_due) if at is not None]
    return arm_of(Opened(wait_id, cn.id, frame.where(cn.id), spec, min(times, default=None)))
