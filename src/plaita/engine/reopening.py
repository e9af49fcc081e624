"""A run that ended in an error goes on: what failed is tried again, what is finished stays finished."""

from __future__ import annotations

from plaita.base.duration import parse_duration_ms
from plaita.engine import failing
from plaita.engine.expression import EvaluationError
from plaita.engine.frames import FAILED, READY, WAITING, Frame
from plaita.engine.machine import Run


def reopen(run: Run, now_ms: int) -> None:
    """Make a restored run able to advance again, from ``now_ms`` on."""
    run.now_ms = max(run.now_ms, now_ms)
    run.active_ms = 0.0
    limit = run.root.graph.timeout
    if run.deadline_ms is not None and limit is not None:
        run.deadline_ms = max(run.deadline_ms, run.now_ms + limit)
    for frame in list(run.frames):
        if frame in run.frames:
            _extend(run, frame)
            _again(run, frame)


def _again(run: Run, frame: Frame) -> None:
    """Failed nodes and waits, which the end closed, are entered again; the rest is still under way or ready."""
    cn = frame.pc
    if frame.state == READY:
        run.ready.append(frame)
    if cn is None or frame.state not in (FAILED, WAITING):
        return
    if frame.open is not None:
        run.waits.pop(frame.open, None)
    if cn.waiting is not None or cn.host is not None:
        frame.state = FAILED
        failing.cut(run, frame)
        frame.reenter(cn)
    frame.state, frame.attempt, frame.due = READY, 0, None
    run.touched[frame] = None
    run.ready.append(frame)


def _extend(run: Run, frame: Frame) -> None:
    """Timeouts that are over, such as the one that ended the run, count from now on."""
    now, cn = run.now_ms, frame.pc
    if frame.limit is not None and frame.limit <= now and frame.graph.timeout is not None:
        frame.limit = now + frame.graph.timeout
        run.touched[frame] = None
    if frame.due is not None and frame.due <= now and cn is not None and cn.timeout is not None:
        frame.due = now + _length(frame)
        run.touched[frame] = None


def _length(frame: Frame) -> int:
    timeout = None if frame.pc is None else frame.pc.timeout
    if timeout is None or isinstance(timeout, int):
        return timeout or 0
    try:
        return parse_duration_ms(timeout(frame))
    except (EvaluationError, ValueError):
        return 0
