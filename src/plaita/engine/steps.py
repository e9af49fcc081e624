"""Steps of nodes that have no frames below them. Each factory binds everything a step needs at load."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plaita.base.duration import parse_duration_ms
from plaita.base.errors import InputError
from plaita.base.json import Json
from plaita.engine.effects import Opened
from plaita.engine.failing import issue
from plaita.engine.failure import FLOW_CODE, Failure, FailureRaised, WaitRefused
from plaita.engine.frames import WAITING, Frame
from plaita.engine.program import CNode, Eval, Step
from plaita.engine.types import Property, conform
from plaita.engine.values import kind_of, render

Test = Callable[[Frame], bool]


def dead_end(cn: CNode) -> CNode:
    """What follows a node without ``next``: a place that fails when it is reached."""
    end = CNode(cn.id, cn.type, cn.graph, cn.index)

    def step(frame: Frame) -> CNode | None:
        raise no_branch(cn, "has no next node and is no end node")

    end.step = step
    return end


def no_branch(cn: CNode, what: str) -> FailureRaised:
    """The error of a node after which nothing follows."""
    text = f"node {cn.id!r} ({cn.type}) {what}"
    return FailureRaised(Failure("no_branch_matched", FLOW_CODE, text, "flow_error", (cn.id,)))


def pass_through(cn: CNode) -> Step:
    """A start node."""
    follows = cn.next

    def step(frame: Frame) -> CNode | None:
        frame.nodes[cn.id] = None
        frame.last = cn
        return follows

    return step


def assign(cn: CNode, value: Eval, output_type: Property | None = None) -> Step:
    """Evaluate and keep."""
    follows, node_id = cn.next, cn.id

    def step(frame: Frame) -> CNode | None:
        frame.nodes[node_id] = value(frame)
        frame.last = cn
        return follows

    def typed(frame: Frame) -> CNode | None:
        frame.nodes[node_id] = conform(output_type, value(frame), "$") if output_type is not None else value(frame)
        frame.last = cn
        return follows

    return step if output_type is None else typed


def branch(cn: CNode, arms: Sequence[tuple[Test, CNode]], otherwise: CNode | None) -> Step:
    """The first arm whose test holds; the result is the id of the target."""
    node_id = cn.id
    tests = tuple(arms)

    def step(frame: Frame) -> CNode | None:
        target = otherwise
        for test, arm in tests:
            if test(frame):
                target = arm
                break
        if target is None:
            raise no_branch(cn, "matched no branch and has no default")
        frame.nodes[node_id] = target.id
        frame.last = cn
        return target

    return step


def cyclic(cn: CNode) -> Step:
    """Wrap the step of a node on a graph cycle: its result may be given again, and every visit costs fuel."""
    inner = cn.step

    def step(frame: Frame) -> CNode | None:
        run = frame.run
        if run.fuel <= 0:
            run.pause(frame, cn)
            return None
        run.fuel -= 1
        if cn.id in frame.nodes:
            if frame.redone is None:
                frame.redone = set()
            frame.redone.add(cn.id)
        return inner(frame)

    return step


def end(cn: CNode, output: Eval, output_type: Property | None) -> Step:
    """Finish the frame with a value: the run's output, or what the host is told."""

    def step(frame: Frame) -> CNode | None:
        value = output(frame)
        if output_type is not None:
            value = conform(output_type, value, "$")
        frame.last = cn
        trace = frame.run.conditions.trace
        if trace is not None:
            trace("end", frame, cn, value)
            trace("finish", frame, cn, value)
        hnode = frame.hnode
        if hnode is None or hnode.host is None:
            frame.run.finish(value)
            return None
        return hnode.host.child_done(frame, value)

    return step


def end_with_error(cn: CNode, error: Eval) -> Step:
    """Finish with a business error: an evaluated object with ``code`` and ``message``."""

    def step(frame: Frame) -> CNode | None:
        found = error(frame)
        if not isinstance(found, dict):
            raise InputError("$.error", f"an object with code and message is needed, not {kind_of(found)}")
        code, text = _code(found.get("code")), render(found.get("message"))
        raise FailureRaised(Failure("error_result", code, text, "error_result", (cn.id,)))

    return step


def _code(value: Json) -> int | str:
    """A code is a whole number or text; any other value is written as JSON."""
    if value is None:
        return FLOW_CODE
    if type(value) is int or isinstance(value, str):
        return value
    return int(value) if type(value) is float and value.is_integer() else render(value)


def deadline_of(frame: Frame, cn: CNode) -> None:
    """Start the node's own timeout when it is entered for the first time."""
    if cn.timeout is None or frame.due is not None:
        return
    limit = cn.timeout if isinstance(cn.timeout, int) else parse_duration_ms(cn.timeout(frame))
    frame.due = frame.run.now_ms + limit
    frame.run.arm(frame, frame.due)


def call(cn: CNode) -> Step:
    """Stop the frame and ask the driver to perform the node."""

    def step(frame: Frame) -> CNode | None:
        deadline_of(frame, cn)
        frame.pc = cn
        if frame.open is None:
            frame.open = f"{frame.addr}@{cn.id}#{frame.visit(cn)}"
        issue(frame.run, frame)
        return None

    return step


def wait(cn: CNode) -> Step:
    """Stop the frame until the wait is answered or its time is over."""

    def step(frame: Frame) -> CNode | None:
        run = frame.run
        if not run.conditions.durable:
            raise WaitRefused(cn.id)
        if cn.waiting is None:
            raise AssertionError(f"node {cn.id!r} has no waiting half")
        deadline_of(frame, cn)
        spec = cn.waiting.spec(frame)
        frame.pc = cn
        frame.open = wait_id = f"{frame.addr}@{cn.id}#{frame.visit(cn)}"
        frame.pending, frame.state = spec.pending, WAITING
        if spec.deadline_ms is not None:
            frame.wait_due = spec.deadline_ms
            run.arm(frame, spec.deadline_ms)
        times = [t for t in (frame.due, frame.wait_due) if t is not None]
        run.waits[wait_id] = frame
        run.effects.opened[wait_id] = Opened(wait_id, cn.id, frame.where(cn.id), spec, min(times, default=None))
        return None

    return step
