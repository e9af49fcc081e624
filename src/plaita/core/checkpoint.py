"""The documented context of an execution, and the run it stands for.

A context is JSON: ``$INPUT``, ``$NODE``, ``$GLOBAL``, ``$PARENT``, ``$ENV`` (always empty: values are read when they
are used), ``$FLOW_ID``, ``$EXECUTION_ID``, ``$LAST_NODE``, ``$BRANCH``, ``EXPRESS_PREFIX``, the roots that nodes set,
and ``$FRAMES``: the cursor, timers, and everything of sub-flows. The documented keys count where both know something;
without ``$FRAMES`` the cursor follows from ``$LAST_NODE`` and ``$BRANCH``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plaita.base.errors import InputError, ResumeError
from plaita.base.json import Json, admit, decode, encode
from plaita.engine.delta import Cursor, Head, UnreadableState, restore, take_delta
from plaita.engine.expression.documented import CONTEXT_ROOTS
from plaita.engine.expression.scope import ABSENT
from plaita.engine.frames import READY, WAITING
from plaita.engine.machine import Conditions, Run
from plaita.engine.program import CNode, Program
from plaita.engine.values import copied

FRAMES = "$FRAMES"
OWN = (*CONTEXT_ROOTS, "FRAMES")

DEADLINE = 1
"""The only time of a head that may be missing."""

Stored = dict[str, bytes]


def context_of(run: Run, stored: Stored, end: tuple[str, Json] | None = None) -> dict[str, Any]:
    """The context now. ``stored`` gathers the run's keys from call to call; ``end``: the end node and its output."""
    for key, value in take_delta(run).items():
        if value is None:
            stored.pop(key, None)
        else:
            stored[key] = value
    context = roots_of(run, end)
    context[FRAMES] = {key: decode(value) for key, value in stored.items() if not _is_documented(key)}
    return context


def roots_of(run: Run, end: tuple[str, Json] | None = None) -> dict[str, Any]:
    """The documented part, as copies; ``end``: the end node and its output. A pending node has its state as result."""
    root = run.root
    nodes = dict(root.nodes)
    last, branch = root.last_id, root.branch
    if root.state == WAITING and root.pc is not None:
        nodes[root.pc.id], last, branch = root.pending, root.pc.id, None
    if end is not None:
        nodes[end[0]], last, branch = end[1], end[0], None
    roots: dict[str, Any] = {
        "$INPUT": None if root.input is ABSENT else root.input,
        "$NODE": nodes,
        "$GLOBAL": root.globals,
        "$PARENT": {},
        "$ENV": {},
        "$FLOW_ID": root.graph.flow_id,
        "$EXECUTION_ID": run.execution_id,
        "$LAST_NODE": last,
        "$BRANCH": branch,
        "EXPRESS_PREFIX": "$",
        **{f"${name}": value for name, value in (root.extra or {}).items()},
    }
    found: dict[str, Any] = copied(roots)
    return found


def _is_documented(key: str) -> bool:
    """Is the value of a key in the documented part: results of the flow itself, and the roots set in it?"""
    return key.startswith("n|") or key == "x"


def run_of(program: Program, conditions: Conditions, context: Mapping[str, Any], now_ms: int) -> tuple[Run, Stored]:
    """The run that a context stands for, and its keys. Raises ``InputError`` for a context that makes no sense."""
    context = admitted(context)
    nodes = _object(context, "$NODE")
    last = context.get("$LAST_NODE")
    frames = None if context.get(FRAMES) is None else _object(context, FRAMES)
    stored = _rebuilt(program, context, now_ms) if frames is None else {k: encode(v) for k, v in frames.items()}
    if "f" not in stored or _is_at_end(program, last, frames):
        raise ResumeError(message="the execution has ended: there is no further step")
    waiting = _waits_at(stored)
    results = {node_id: value for node_id, value in nodes.items() if node_id != waiting}
    if waiting is not None:
        stored["a"] = encode(nodes.get(waiting))
    for i, (node_id, value) in enumerate(results.items()):
        stored[f"n|{node_id}"] = encode([i, value])
    extra = {k[1:]: v for k, v in context.items() if k[:1] == "$" and k[1:] not in OWN}
    if extra:
        stored["x"] = encode(extra)
    run = _restored(program, conditions, context, stored, now_ms)
    run.root.globals = {**run.root.globals, **_object(context, "$GLOBAL")}
    if frames is None:
        run.root.last = None if last is None else program.root.nodes.get(last)
    return run, stored


def admitted(context: object) -> dict[str, Any]:
    """A copy of a context. Raises ``InputError`` for what is no JSON object."""
    found = admit(context if not isinstance(context, Mapping) else dict(context), "context")
    if not isinstance(found, dict):
        raise InputError("context", f"is an object, not {type(found).__name__}")
    return found


def _restored(program: Program, conditions: Conditions, context: Mapping[str, Any], stored: Stored, now_ms: int) -> Run:
    """The stored keys come from outside: they may say anything. Raises ``InputError``."""
    try:
        _check_head(decode(stored["h"]))
        run = restore(program, conditions, context.get("$INPUT"), stored, now_ms=now_ms)
        _check_times(run)
        lost = any(frame.pc is None for frame in run.frames)
        idle = any(frame.state == READY and frame not in run.ready for frame in run.frames)
    except (UnreadableState, LookupError, TypeError, ValueError, AttributeError, OverflowError) as e:
        raise InputError(f"context.{FRAMES}", f"is no state of this flow: {e}") from None
    if lost or idle:
        why = "it stands at no node" if lost else "it is ready to go on and not listed as ready"
        raise InputError(f"context.{FRAMES}", f"is no state of this flow: {why}")
    return run


def _check_head(head: Json) -> None:
    """Times are compared long after they are read. Raises ``TypeError``."""
    _, *times, ready = head if isinstance(head, list) else [None, head, None]
    for i, at in enumerate(times):
        if type(at) not in ((int, float, type(None)) if i == DEADLINE else (int, float)):
            raise TypeError(f"{at!r} is no time")
    if not isinstance(ready, list):
        raise TypeError("what is ready is a list")


def _check_times(run: Run) -> None:
    """Raises ``TypeError`` for a time of a frame that is none."""
    for frame in run.frames:
        for at in (frame.due, frame.wait_due, frame.retry_at, frame.limit):
            if type(at) not in (int, float, type(None)):
                raise TypeError(f"{at!r} is no time")


def _is_at_end(program: Program, last: Any, frames: Any) -> bool:
    cn = program.root.nodes.get(last) if frames is None and isinstance(last, str) else None
    return cn is not None and cn.type == "end"


def _object(context: Mapping[str, Any], key: str) -> dict[str, Json]:
    found = context.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InputError(f"context.{key}", f"is an object, not {type(found).__name__}")
    return found


def _waits_at(stored: Stored) -> str | None:
    """The node of the flow itself that waits."""
    fields = decode(stored["f"])
    if not isinstance(fields, list) or len(fields) != len(Cursor._fields):
        raise InputError(f"context.{FRAMES}.f", f"is a list of {len(Cursor._fields)} fields")
    cursor = Cursor(*fields)
    return cursor.node if cursor.state == WAITING else None


def _rebuilt(program: Program, context: Mapping[str, Any], now_ms: int) -> Stored:
    """The cursor from the documented keys alone."""
    nodes, last = _object(context, "$NODE"), context.get("$LAST_NODE")
    at = _following(program, context)
    waits = at is not None and at.id == last and at.waiting is not None
    visits = {cn.id: 1 for node_id in nodes if (cn := program.root.nodes.get(node_id)) is not None and cn.counted}
    cursor = Cursor(
        host=None,
        host_node=None,
        key=None,
        node=None if at is None else at.id,
        state=WAITING if waits else READY,
        last=last if not waits and last in program.root.nodes else None,
        visits=visits or None,
        attempt=0,
        times=[None, None, None, None],
        open=f"@{last}#{visits.get(str(last), 1)}" if waits else None,
        stamp=None,
    )
    timeout = program.root.timeout
    head = Head(now_ms, None if timeout is None else now_ms + timeout, 0, now_ms, 0, [] if waits else [""])
    return {"f": cursor.encoded(), "h": head.encoded()}


def _following(program: Program, context: Mapping[str, Any]) -> CNode | None:
    """Where the cursor stands: at the wait that is pending, else behind the last node."""
    last, branch = context.get("$LAST_NODE"), context.get("$BRANCH")
    if last is None:
        return program.root.start
    cn = program.root.nodes.get(last)
    if cn is None:
        raise InputError("context.$LAST_NODE", f"{last!r} is not a node of this flow")
    state = _object(context, "$NODE").get(last)
    if cn.waiting is not None and isinstance(state, dict) and state.get("status") == "pending":
        return cn
    if cn.branching:
        target = program.root.nodes.get(branch) if isinstance(branch, str) else None
        if target is None:
            raise InputError("context.$BRANCH", f"{branch!r} is not a node of this flow")
        return target
    return cn.next
