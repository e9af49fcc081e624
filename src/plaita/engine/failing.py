"""What happens when a node fails, times out or is cut: handlers, retries, the way to the hosts above.

A failure is first followed upwards without touching anything (``_follow``): either somebody catches it, then frames
are closed up to there, or it ends the run and every frame stays as it is, so that the run can be reopened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from plaita.base.errors import InputError
from plaita.base.json import Json, encode
from plaita.engine import retrying
from plaita.engine.effects import Call, Closed, Failed
from plaita.engine.expression import EvaluationError
from plaita.engine.failure import FLOW_CODE, NODE_CODE, TIMEOUT_CODE, Failure, FailureRaised
from plaita.engine.frames import BACKOFF, CALLING, CLOSED, FAILED, READY, WAITING, Frame, node_at
from plaita.engine.program import CNode, Handler
from plaita.policy.retry import RetryAt

if TYPE_CHECKING:
    from plaita.engine.machine import Run
    from plaita.engine.tracing import Told

T = TypeVar("T")
AnswerKind: TypeAlias = Literal["event", "timeout", "given"]


@dataclass(frozen=True, slots=True)
class _Replaced:
    """A handler puts ``value`` in the place of the result; ``target`` is where a branching node goes."""

    value: Json
    target: CNode | None = None


@dataclass(frozen=True, slots=True)
class _Collected:
    """The host keeps the failure as the value of its kid."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class _Caught:
    """A frame that goes on after a failure, and how."""

    frame: Frame
    outcome: RetryAt | _Replaced | _Collected
    failure: Failure


def to_failure(error: BaseException, cn: CNode | None) -> Failure:
    """The failure a raised exception stands for, located at the node whose step raised it."""
    path = () if cn is None else (cn.id,)
    match error:
        case FailureRaised(failure=failure):
            return failure if cn is None else failure.at(cn.id)
        case EvaluationError():
            kind, text = "node_error", str(error)
        case InputError():
            kind, text = "input_error", str(error)
        case RecursionError():
            kind, text = "depth_limit", "values are nested too deep"
        case _:
            kind, text = "node_error", f"{type(error).__name__}: {error}"
    return Failure(kind, NODE_CODE, _named(cn, text), path=path, origin=error)


def outcome_of(cn: CNode, work: Callable[[], T]) -> T | Failure:
    """What closures over user data give; whatever they raise is a failure of the node."""
    try:
        return work()
    except Exception as e:  # noqa: BLE001 - an author's expression must not end the process
        return to_failure(e, cn)


def _named(cn: CNode | None, text: str) -> str:
    return text if cn is None else f"node {cn.id!r} ({cn.type}): {text}"


def end(run: Run, failure: Failure) -> None:
    """The run ends with this failure. Frames stay as they are: the cursor keeps its place for a reopening."""
    run.effects.ended = Failed(failure)
    if run.conditions.trace is not None:
        run.conditions.trace("abort", run.root, None, failure)


def refuse_wait(run: Run, frame: Frame, node_id: str) -> None:
    """A wait in a run that is not durable ends it; no handler catches that."""
    text = f"node {frame.where(node_id)!r} waits, and this run is not durable"
    failure = Failure("wait_not_possible", FLOW_CODE, text, "flow_error", path=(node_id,), final=True)
    found = _follow(run, frame, failure, None, [])
    end(run, found if isinstance(found, Failure) else failure)


def fail(run: Run, frame: Frame, failure: Failure) -> None:
    """The node under the cursor of ``frame`` failed: retry it, let a handler or a host catch it, or end the run."""
    cn = node_at(frame)
    run.touched[frame] = None
    frame.state = FAILED
    cut(run, frame)
    # A business error is the author's word: the handler of the node that says it is not asked.
    own = None if failure.kind == "error_result" else cn.on_error
    passed: list[tuple[Frame, Failure]] = []
    found = _follow(run, frame, failure, own, passed)
    if (
        isinstance(found, Failure)
        and own is not None
        and frame.open is not None
        and retrying.redrive(run, frame, failure)
    ):
        _tell(run, "retry", frame, failure)
        return
    _tell_passed(run, passed)
    if isinstance(found, _Caught):
        _go_on(run, found)
    else:
        end(run, found)


def time_out(run: Run, frame: Frame) -> None:
    """The node's own timeout: its timeout handler decides, and everything under it is cut."""
    cn = node_at(frame)
    failure = Failure("timeout", TIMEOUT_CODE, _named(cn, "exceeded its timeout"), path=(cn.id,), retryable=True)
    passed: list[tuple[Frame, Failure]] = []
    found = _follow(run, frame, failure, cn.on_timeout, passed)
    _tell_passed(run, passed)
    if isinstance(found, _Caught):
        withdraw(run, frame, "timeout")
        _go_on(run, found)
    else:
        end(run, found)


def outlived(run: Run, frame: Frame) -> None:
    """A sub-flow exceeded its own timeout: an error of its host."""
    host_id = "" if frame.hnode is None else frame.hnode.id
    text = f"the sub-flow of node {host_id!r} exceeded its timeout of {frame.graph.timeout} ms"
    passed: list[tuple[Frame, Failure]] = []
    found = _follow(run, frame, Failure("timeout", TIMEOUT_CODE, text, "flow_error", retryable=True), None, passed)
    _tell_passed(run, passed)
    if isinstance(found, _Caught):
        _go_on(run, found)
    else:
        end(run, found)


def wait_over(run: Run, frame: Frame) -> None:
    """A wait's own deadline: the timeout handler if there is one, else the documented ``timeout`` state."""
    cn = node_at(frame)
    if cn.on_timeout.strategy != "abort" or cn.waiting is None or frame.pending is None:
        time_out(run, frame)
        return
    pending = frame.pending
    withdraw(run, frame, "timeout")
    answer(run, frame, "timeout", pending, None)


def answer(run: Run, frame: Frame, kind: AnswerKind, pending: dict[str, Json], data: Json) -> None:
    """A wait that was closed: its node's result is what it makes of the answer, or was ``given`` whole."""
    cn = node_at(frame)
    if cn.waiting is None:
        raise AssertionError(f"node {cn.id!r} has no waiting half")
    _tell(run, "resume", frame, data)
    try:
        value = data if kind == "given" else cn.waiting.resume(pending, kind, data)
    except FailureRaised as e:
        fail(run, frame, e.failure.at(cn.id))
        return
    go_to(run, frame, cn, value, None)


def _tell(run: Run, kind: Told, frame: Frame, value: Failure | Json) -> None:
    if run.conditions.trace is not None:
        run.conditions.trace(kind, frame, frame.pc, value)


def _tell_passed(run: Run, passed: list[tuple[Frame, Failure]]) -> None:
    """A failure on its way up: each node it was not caught at, and the sub-flow that ended with it."""
    for frame, failure in passed:
        _tell(run, "fail", frame, failure)
        if frame.host is not None:
            _tell(run, "abort", frame, failure)


def _follow(
    run: Run, frame: Frame, failure: Failure, handler: Handler | None, passed: list[tuple[Frame, Failure]]
) -> _Caught | Failure:
    """Who catches a failure that starts in ``frame``? Nobody: the failure as the root sees it. Changes nothing.

    ``handler`` is asked in ``frame`` itself, the error handlers of the hosts above in turn. ``passed`` is told of the
    frames where nobody caught it, with the failure as it left them.
    """
    at = frame
    while True:
        if handler is not None:
            outcome = _judge(run, at, handler, failure)
            if not isinstance(outcome, Failure):
                return _Caught(at, outcome, failure)
            failure = outcome
        passed.append((at, failure))
        host, hnode = at.host, at.hnode
        if host is None or hnode is None or hnode.host is None:
            return failure
        if hnode.host.collects and not failure.final:
            return _Caught(at, _Collected(failure), failure)
        failure = failure.under(hnode.id) if at.key is None else failure.under(hnode.id, at.key)
        at, handler = host, None if failure.final else hnode.on_error


def _judge(run: Run, frame: Frame, handler: Handler, failure: Failure) -> RetryAt | _Replaced | Failure:
    """What one handler makes of a failure; a failure of its own goes on to the host."""
    cn = node_at(frame)
    if retry := retrying.retry_of(run, frame, handler, failure):
        return retry
    if handler.strategy == "abort":
        named = handler.code is not None or handler.message is not None
        return failure.renamed(handler.code, handler.message) if named else failure
    value: Json = None
    if handler.strategy == "continue-with" and handler.default is not None:
        default = handler.default
        value = outcome_of(cn, lambda: default(frame))
        if isinstance(value, Failure):
            return value
    if not cn.branching:
        return _Replaced(value)
    target = branch_target(frame, cn, value)
    return target if isinstance(target, Failure) else _Replaced(value, target)


def _go_on(run: Run, caught: _Caught) -> None:
    frame = caught.frame
    run.touched[frame] = None
    match caught.outcome:
        case _Collected(failure):
            host, hnode, key = frame.host, frame.hnode, frame.key
            close(run, frame)
            if host is not None and hnode is not None and hnode.host is not None:
                hnode.host.collect(host, key, failure)
        case RetryAt(at_ms):
            cut(run, frame)
            _tell(run, "retry", frame, caught.failure)
            retrying.back_off(run, frame, at_ms, caught.failure)
        case _Replaced(value, target):
            cn = node_at(frame)
            cut(run, frame)
            go_to(run, frame, cn, value, target)


def go_to(run: Run, frame: Frame, cn: CNode, value: Json, target: CNode | None) -> None:
    """A stopped node has its result; a branching one goes to ``target``."""
    _tell(run, "answered", frame, value)
    frame.leave(cn, value)
    if target is not None:
        frame.pc = target
    run.ready.append(frame)


def _target(value: Json) -> str:
    return "null" if value is None else repr(value)


def branch_target(frame: Frame, cn: CNode, value: Json) -> CNode | Failure:
    """The node that the result of a branching node names."""
    target = frame.graph.nodes.get(value) if isinstance(value, str) else None
    if target is None:
        text = _named(cn, f"branches to {_target(value)}, which is not a node of this flow")
        return Failure("no_branch_matched", FLOW_CODE, text, "node_not_found", (cn.id,))
    return target


def is_due(frame: Frame, at_ms: int) -> bool:
    """Does a timer entry still agree with the frame?"""
    if frame.state == CLOSED:
        return False
    if frame.state == BACKOFF and at_ms == frame.retry_at:
        return True
    return at_ms in (frame.due, frame.wait_due, frame.limit)


def again(run: Run, frame: Frame) -> None:
    """The backoff is over: a call is issued again under its id and key, a host starts its sub-flow afresh."""
    frame.retry_at = None
    if frame.open is not None:
        issue(run, frame)
    else:
        frame.state = READY
        run.ready.append(frame)


def issue(run: Run, frame: Frame) -> None:
    """Ask the driver for a call under the frame's stamp, drawn once so that a repetition is the same request."""
    if frame.stamp is None:
        frame.stamp = (run.now_ms, run.dice, fingerprint(node_at(frame), frame) if run.conditions.durable else "")
    frame.state = CALLING
    call = call_of(frame)
    run.calls[call.id] = frame
    run.effects.calls[call.id] = call


def fingerprint(cn: CNode, scope: Any) -> str:
    """What identifies the request of a call: a digest of its arguments, empty when there are none or they fail."""
    arguments = cn.arguments
    if arguments is None:
        return ""
    value = outcome_of(cn, lambda: arguments(scope))
    return "" if isinstance(value, Failure) else hashlib.blake2b(encode(value), digest_size=8).hexdigest()


def call_of(frame: Frame) -> Call:
    """The open call of a frame."""
    cn, stamp = node_at(frame), frame.stamp
    if frame.open is None or stamp is None:
        raise AssertionError(f"frame {frame.addr!r} has no open call")
    return Call(frame.open, cn, frame, frame.attempt + 1, frame.open, stamp[0], stamp[1], frame.due, stamp[2])


def cut(run: Run, frame: Frame) -> None:
    """End whatever is under way in a frame and below it; the frame itself stays."""
    for kid in list(frame.kids.values()):
        close(run, kid)
    withdraw(run, frame, "cut")
    frame.acc = None
    frame.forget()


def close(run: Run, frame: Frame) -> None:
    """Remove a frame with everything below it, from memory and from the next delta on from the store."""
    if frame.kids or frame.open is not None or frame.acc_keys:
        cut(run, frame)
    frame.state = CLOSED
    run.frames.pop(frame, None)
    if frame.host is not None:
        frame.host.kids.pop(frame.key if frame.key is not None else "", None)
    run.erase(frame)


def withdraw(run: Run, frame: Frame, why: str) -> None:
    """Take back the frame's call or wait. What was opened in this very advance leaves no trace."""
    if frame.open is None:
        return
    if frame.state == CALLING:
        run.calls.pop(frame.open, None)
        if run.effects.calls.pop(frame.open, None) is None:
            run.effects.drops.append(frame.open)
        frame.state = FAILED
    elif frame.state == WAITING:
        run.waits.pop(frame.open, None)
        if run.effects.opened.pop(frame.open, None) is None:
            run.effects.closed.append(Closed(frame.open, "timeout" if why == "timeout" else "cut"))
        frame.open, frame.pending, frame.state = None, None, FAILED
