"""What happens when a node fails, times out or is cut: handlers, retries, the way to the hosts above."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plaita.base.errors import InputError
from plaita.base.json import Json
from plaita.engine.effects import Call, Closed, Failed
from plaita.engine.expression import EvaluationError
from plaita.engine.failure import CANCEL_CODE, FLOW_CODE, NODE_CODE, TIMEOUT_CODE, Failure, FailureRaised
from plaita.engine.frames import BACKOFF, CALLING, CLOSED, FAILED, READY, WAITING, Frame
from plaita.engine.program import CNode, Handler
from plaita.policy.retry import Backoff, RetryAt, decide_redrive, decide_retry

if TYPE_CHECKING:
    from plaita.engine.machine import Run

__all__ = ["CANCEL_CODE", "fail", "to_failure"]


def to_failure(error: BaseException, cn: CNode | None) -> Failure:
    """The failure a raised exception stands for, located at the node whose step raised it."""
    path = () if cn is None else (cn.id,)
    match error:
        case FailureRaised(failure=failure):
            return failure if cn is None else failure.at(cn.id)
        case EvaluationError():
            return Failure("node_error", NODE_CODE, _named(cn, str(error)), path=path)
        case InputError():
            return Failure("input_error", NODE_CODE, _named(cn, str(error)), path=path)
        case RecursionError():
            return Failure("depth_limit", NODE_CODE, _named(cn, "values are nested too deep"), path=path)
        case _:
            return Failure("node_error", NODE_CODE, _named(cn, f"{type(error).__name__}: {error}"), path=path)


def _named(cn: CNode | None, text: str) -> str:
    return text if cn is None else f"node {cn.id!r} ({cn.type}): {text}"


def end(run: Run, failure: Failure) -> None:
    """The run ends with this failure. Frames stay as they are: the cursor keeps its place for a reopening."""
    run.effects.ended = Failed(failure)


def refuse_wait(run: Run, frame: Frame, node_id: str) -> None:
    """A wait in a run that is not durable ends it; no handler catches that."""
    where = frame.where(node_id)
    text = f"node {where!r} waits, and this run is not durable"
    end(run, Failure("wait_not_possible", FLOW_CODE, text, "flow_error", path=(node_id,), final=True))


def fail(run: Run, frame: Frame, failure: Failure, *, own: bool = True) -> None:
    """The node under the cursor of ``frame`` failed. ``own`` false: its own handler is not asked (timeouts, end nodes).

    When nobody up to the root catches it the run ends, or the failed call goes into backoff (re-drive); frames are
    left untouched in that case. Otherwise frames are closed up to the handler that catches it.
    """
    cn = _node(frame)
    frame.pc = cn
    own = own and failure.kind != "error_result"
    run.touched[frame] = None
    if not _caught(frame, failure, own):
        if own and frame.open is not None and _redrive(run, frame, failure):
            return
        frame.state = FAILED
        end(run, _as_seen_from_root(frame, failure, own))
        return
    while True:
        cn = _node(frame)
        cut(run, frame)
        handler = cn.on_error if own else None
        outcome = None if handler is None else _handle(run, frame, cn, handler, failure)
        if outcome is None and handler is not None:
            return
        failure = outcome or failure
        host, hnode, key = frame.host, frame.hnode, frame.key
        close(run, frame)
        if host is None or hnode is None or hnode.host is None:
            end(run, failure)
            return
        if hnode.host.collect(host, key, failure):
            run.unpumped = True
            return
        failure = failure.under(hnode.id) if key is None else failure.under(hnode.id, key)
        frame, own = host, True
        run.touched[frame] = None


def _node(frame: Frame) -> CNode:
    if frame.pc is None:
        raise AssertionError(f"frame {frame.addr!r} has no cursor")
    return frame.pc


def _caught(frame: Frame, failure: Failure, own: bool) -> bool:
    """Will any handler on the way to the root keep the run going?"""
    at: Frame | None = frame
    while at is not None:
        cn = _node(at)
        if own:
            if cn.on_error.strategy != "abort":
                return True
            if failure.retryable and at.attempt < cn.on_error.retries:
                return True
        if at.hnode is not None and at.hnode.host is not None and at.hnode.host.collects:
            return True
        at, own = at.host, True
    return False


def _as_seen_from_root(frame: Frame, failure: Failure, own: bool) -> Failure:
    at: Frame | None = frame
    while at is not None:
        handler = _node(at).on_error
        if own and (handler.code is not None or handler.message is not None):
            failure = failure.renamed(handler.code, handler.message)
        if at.hnode is not None:
            failure = failure.under(at.hnode.id) if at.key is None else failure.under(at.hnode.id, at.key)
        at, own = at.host, True
    return failure


def _redrive(run: Run, frame: Frame, failure: Failure) -> bool:
    if not run.conditions.redrive or not failure.retryable or _node(frame).on_error.retries:
        return False
    decision = decide_redrive(
        failed=frame.attempt + 1,
        redrives=run.redrives,
        now_ms=run.now_ms,
        dice=run.dice,
        until_ms=_budget_end(run, frame),
    )
    if not isinstance(decision, RetryAt):
        return False
    run.redrives += 1
    _back_off(run, frame, decision.at_ms, failure)
    return True


def _handle(run: Run, frame: Frame, cn: CNode, handler: Handler, failure: Failure) -> Failure | None:
    """Apply one handler; ``None`` when it took care, else the failure that goes on to the host."""
    if failure.retryable and frame.attempt < handler.retries:
        decision = decide_retry(
            Backoff(handler.base_ms, handler.factor, handler.cap_ms, handler.jitter),
            failed=frame.attempt + 1,
            retries_max=handler.retries,
            now_ms=run.now_ms,
            dice=run.dice,
            until_ms=_budget_end(run, frame),
        )
        if isinstance(decision, RetryAt):
            _back_off(run, frame, decision.at_ms, failure)
            return None
    return _substitute(run, frame, cn, handler, failure)


def _substitute(run: Run, frame: Frame, cn: CNode, handler: Handler, failure: Failure) -> Failure | None:
    if handler.strategy == "abort":
        if handler.code is None and handler.message is None:
            return failure
        return failure.renamed(handler.code, handler.message)
    value: Json = None
    if handler.strategy == "continue-with" and handler.default is not None:
        try:
            value = handler.default(frame)
        except Exception as e:  # closures over user data; a default that fails is a failure of this node
            return to_failure(e, cn)
    if cn.branching:
        return route(run, frame, cn, value)
    frame.leave(cn, value)
    run.ready.append(frame)
    return None


def _back_off(run: Run, frame: Frame, at_ms: int, failure: Failure) -> None:
    frame.attempt += 1
    frame.state, frame.retry_at, frame.acc = BACKOFF, at_ms, None
    run.arm(frame, at_ms)
    run.effects.retries.append((frame.where(_node(frame).id), at_ms, failure))


def _budget_end(run: Run, frame: Frame) -> int | None:
    times = [t for t in (frame.due, run.deadline_ms) if t is not None]
    return min(times, default=None)


def route(run: Run, frame: Frame, cn: CNode, value: Json) -> Failure | None:
    """Leave a branching node for the node its result names."""
    target = frame.graph.nodes.get(value) if isinstance(value, str) else None
    if target is None:
        text = _named(cn, f"branches to {value!r}, which is not a node of this flow")
        return Failure("no_branch_matched", FLOW_CODE, text, "node_not_found", (cn.id,))
    frame.leave(cn, value)
    frame.pc = target
    run.ready.append(frame)
    return None


def is_due(frame: Frame, at_ms: int) -> bool:
    """Does a timer entry still agree with the frame?"""
    if frame.state == CLOSED:
        return False
    if frame.state == BACKOFF:
        return at_ms in (frame.retry_at, frame.due, frame.limit)
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
    """Ask the driver for a call under the frame's stamp, which is drawn once so that a repetition is the same request."""
    if frame.stamp is None:
        frame.stamp = (run.now_ms, run.dice)
    frame.state = CALLING
    call = call_of(frame)
    run.calls[call.id] = frame
    run.effects.calls[call.id] = call


def call_of(frame: Frame) -> Call:
    """The open call of a frame."""
    cn, stamp = _node(frame), frame.stamp
    if frame.open is None or stamp is None:
        raise AssertionError(f"frame {frame.addr!r} has no open call")
    return Call(frame.open, cn, frame, frame.attempt + 1, frame.open, stamp[0], stamp[1], frame.due)


def outlived(run: Run, frame: Frame) -> None:
    """A sub-flow exceeded its own timeout: an error of its host."""
    host, hnode = frame.host, frame.hnode
    if host is None or hnode is None or hnode.host is None:
        return
    text = f"the sub-flow of node {hnode.id!r} exceeded its timeout of {frame.graph.timeout} ms"
    failure = Failure("timeout", TIMEOUT_CODE, text, "flow_error", retryable=True)
    key = frame.key
    close(run, frame)
    if hnode.host.collect(host, key, failure):
        run.unpumped = True
        return
    fail(run, host, failure.under(hnode.id) if key is None else failure.under(hnode.id, key))


def wait_over(run: Run, frame: Frame) -> None:
    """A wait's own deadline: the timeout handler if there is one, else the documented ``timeout`` state."""
    cn = _node(frame)
    if cn.on_timeout.strategy != "abort" or cn.waiting is None or frame.pending is None:
        time_out(run, frame)
        return
    pending = frame.pending
    withdraw(run, frame, "timeout")
    try:
        value = cn.waiting.resume(pending, "timeout", None)
    except FailureRaised as e:
        fail(run, frame, e.failure.at(cn.id), own=False)
        return
    frame.leave(cn, value)
    run.ready.append(frame)


def time_out(run: Run, frame: Frame) -> None:
    """The node's own timeout: everything under it is cut, then its timeout handler decides."""
    cn, handler = _node(frame), _node(frame).on_timeout
    text = _named(cn, "exceeded its timeout")
    failure = Failure("timeout", TIMEOUT_CODE, text, path=(cn.id,), retryable=True)
    if handler.strategy == "abort" and not _caught(frame, failure, own=False):
        frame.state = FAILED
        end(run, _as_seen_from_root(frame, failure, own=False))
        return
    withdraw(run, frame, "timeout")
    cut(run, frame)
    outcome = _substitute(run, frame, cn, Handler(handler.strategy, handler.default, handler.code, handler.message), failure)
    if outcome is not None:
        fail(run, frame, outcome, own=False)


def cut(run: Run, frame: Frame) -> None:
    """End whatever is under way in a frame and below it; the frame itself stays."""
    for kid in list(frame.kids.values()):
        close(run, kid)
    withdraw(run, frame, "cut")
    forget(run, frame)


def close(run: Run, frame: Frame) -> None:
    """Remove a frame with everything below it, from memory and from the next delta on from the store."""
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


def forget(run: Run, frame: Frame) -> None:
    """Drop the state of the host under the cursor."""
    frame.acc = None
    for key in frame.acc_keys:
        run.dels[key] = None
    frame.acc_keys.clear()
