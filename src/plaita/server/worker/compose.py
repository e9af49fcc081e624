"""From an advance to a settle: pure, so that what a worker writes can be read in one place."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from plaita.base.json import encode
from plaita.base.record import record
from plaita.core.arming import arm_of
from plaita.engine.delta import Delta, take_delta
from plaita.engine.effects import Done, Effects, Failed
from plaita.engine.failure import Failure
from plaita.engine.machine import Run, next_due
from plaita.ports.runs import Arm, Closing, End, HandBack, Header, Keep, Next, Park, Spawn, Step
from plaita.ports.values import Token, WaitId

ERROR_BYTES_MAX = 65_536


@record
class Commit:
    """What a step is composed of besides the run: who writes, what was read, what there is to tell."""

    header: Header
    token: Token
    seq: int
    ack: int
    progress: bool
    draining: bool
    history: tuple[bytes, ...]
    spawns: tuple[Spawn, ...] = ()


def compose(run: Run, effects: Effects, commit: Commit) -> Step:
    """The settle of one advance."""
    following = _next(run, effects, draining=commit.draining)
    ended = isinstance(following, End) and following.status != "error"
    delta: Delta = {} if ended else take_delta(run)
    closes = tuple(Closing(WaitId(c.id), c.why, c.event) for c in effects.closed)
    arms = () if isinstance(following, End) else tuple(arm_of(o) for o in effects.opened.values())
    return Step(
        commit.header.run_id,
        commit.token,
        commit.seq,
        _digest(delta, following, closes, arms, commit),
        delta,
        following,
        closes,
        arms,
        commit.spawns,
        commit.ack,
        commit.progress,
        commit.history,
    )


def _next(run: Run, effects: Effects, *, draining: bool) -> Next:
    match effects.ended:
        case Done(output):
            return End("completed", output=encode(output))
        case Failed(failure):
            if failure.kind == "cancelled":
                return End("cancelled")
            return End("error", error=error_bytes(failure))
    if effects.more or run.calls:
        return HandBack() if draining else Keep()
    due = next_due(run)
    return Park(due, _retry(run))


def _retry(run: Run) -> int | None:
    return min((f.retry_at for f in run.frames if f.retry_at is not None), default=None)


def error_bytes(failure: Failure) -> bytes:
    """The stored shape of an error, its message bounded."""
    shape = failure.as_json()
    if len(shape["message"]) > ERROR_BYTES_MAX:
        shape["message"] = shape["message"][:ERROR_BYTES_MAX] + "…"
    if failure.cause is not None:
        shape["cause"] = failure.cause.as_json()
    return encode(shape)


def _digest(delta: Delta, following: Next, closes: Sequence[Closing], arms: Sequence[Arm], commit: Commit) -> str:
    changed = "\0".join(delta).encode()
    parts: tuple[Any, ...] = (following, closes, arms, commit.spawns, commit.ack, commit.seq, commit.progress)
    written = [b"-" if value is None else value for value in delta.values()]
    data = b"\0".join((changed, *written, repr(parts).encode(), *commit.history))
    return hashlib.blake2b(data, digest_size=16).hexdigest()
