"""offer and accept: a producer's message becomes a start, an answer, an event or a cancel, or a dead letter."""

from __future__ import annotations

import math
from dataclasses import replace

from plaita.backends.limits import Limits
from plaita.backends.rows import Rows, RunRow
from plaita.backends.verbs.cancel import cancel
from plaita.backends.verbs.finish import Ending, finish
from plaita.backends.verbs.messages import (
    Aim,
    Aimed,
    Announce,
    Answer,
    Binding,
    Elapse,
    GoOn,
    Start,
    Stop,
    read,
    refused,
)
from plaita.backends.verbs.publish import publish
from plaita.backends.verbs.reopen import reopen
from plaita.backends.verbs.submit import submit
from plaita.backends.verbs.wake import elapse, wake
from plaita.base.errors import InputError
from plaita.base.ids import check_id, start_digest
from plaita.base.json import encode
from plaita.policy.approval import STRANGE, is_strange
from plaita.ports.inbox import (
    Accepted,
    CancelAccepted,
    DeadLetter,
    DeadLettered,
    EventAccepted,
    Message,
    Offered,
    Outcome,
    Passed,
    Passing,
    Resumed,
    Retried,
    Started,
)  # fmt: skip
from plaita.ports.runs import NoRun, Submission, SubmitConflict, Submitted, Tombstoned
from plaita.ports.values import TERMINAL, RunId, WaitId

NO_CLOSURE = ""
"""Of an execution whose flow was not published when it was started: it ends at once."""
ACTOR = "message"
"""Who answered or cancelled, in the history."""


def offer(rows: Rows, message_id: str, body: bytes) -> Offered:
    """Store a message; while one of that id waits, another changes nothing."""
    checked_message(message_id, body, rows.limits)
    if rows.messages.holds(message_id):
        return Offered(duplicate=True)
    rows.messages.add(Message(message_id, body, rows.now))
    return Offered(duplicate=False)


def checked_message(message_id: str, body: bytes, limits: Limits) -> None:
    """Raises ``InputError``: no id, or too large."""
    if not message_id:
        raise InputError("message_id", "is missing")
    check_id(message_id, "message_id")
    if len(body) > limits.message_bytes_max:
        raise InputError("body", f"has {len(body)} bytes; at most {limits.message_bytes_max} are allowed")


def accept(rows: Rows, n: int) -> list[Accepted]:
    """Each message leaves the inbox in the step of its effect; a dead letter touches no run."""
    return [Accepted(message.message_id, _accept(rows, message)) for message in rows.messages.first(n)]


def _accept(rows: Rows, message: Message) -> Outcome:
    outcome = _carry_out(rows, message)
    rows.messages.remove(message)
    if isinstance(outcome, DeadLettered):
        rows.messages.bury(DeadLetter(message, outcome.reason, outcome.detail, rows.now))
    return outcome


def _carry_out(rows: Rows, message: Message) -> Outcome:
    wanted = read(message)
    if isinstance(wanted, DeadLettered):
        return wanted
    order = wanted.order
    if isinstance(order, Announce):
        return EventAccepted(publish(rows, order.event_id, order.event_type, order.key, order.data))
    run = rows.runs.load(order.run_id if isinstance(order, Start) else order.aim.run_id)
    is_live = run is not None and run.status not in TERMINAL
    age_ms = rows.now - wanted.since_ms
    age_max = rows.limits.message_age_ms or math.inf
    if not is_live and age_ms > age_max:
        return refused("too_old", f"sent {age_ms} ms ago; at most {age_max} are allowed")
    if isinstance(order, Start):
        return _start(rows, order, run)
    if run is None or run.tenant != order.aim.tenant:
        return refused("no_run", no_run(order.aim))
    if order.aim.flow_id not in ("", rows.record.start(run).start.flow_id):
        return refused("conflict", other_flow(order.aim))
    return _aimed(rows, order, run)


def _aimed(rows: Rows, order: Aimed, run: RunRow) -> Outcome:
    run_id = run.run_id
    match order:
        case Answer(_, binding) | Elapse(_, binding) if not _fits(rows, run, binding):
            return Passed("not_bound")
        case Answer(_, Binding(wait_id), data) if is_strange(data) and _asks_people(rows, run, wait_id):
            return refused("invalid_payload", STRANGE)
        case Answer(_, Binding(wait_id), data):
            return Resumed(wake(rows, run_id, wait_id, data, ACTOR))
        case Elapse(_, Binding(wait_id)):
            return Resumed(elapse(rows, run, wait_id))
        case GoOn(_, revive) if revive and (run.blocked or run.status == "error"):
            answer = reopen(rows, run_id)
            assert not isinstance(answer, NoRun), "it was loaded in this transaction"
            return Retried(answer)
        case GoOn():
            return Passed(_standing(run))
        case Stop():
            return CancelAccepted(cancel(rows, run_id, ACTOR))


def _fits(rows: Rows, run: RunRow, binding: Binding) -> bool:
    """Whether a wait, if there is one, waits for that type of event; a wait by hand may have none."""
    wait = rows.waits.of(run).get(binding.wait_id) if run.armed else None
    return wait is None or "" in (binding.event_type, wait.event_type) or binding.event_type == wait.event_type


def _asks_people(rows: Rows, run: RunRow, wait_id: WaitId) -> bool:
    wait = rows.waits.of(run).get(wait_id) if run.armed else None
    return wait is not None and wait.task_id is not None


def _standing(run: RunRow) -> Passing:
    """Executions go on by themselves: nobody has to tell them."""
    if run.status in TERMINAL:
        return "already_terminal"
    return "already_suspended" if run.status == "suspended" else "goes_on"


def no_run(aim: Aim) -> str:
    """Who is not there, in words."""
    return f"there is no execution {aim.run_id!r} of tenant {aim.tenant!r}"


def other_flow(aim: Aim) -> str:
    """What the message takes the execution for, in words."""
    return f"execution {aim.run_id!r} is not one of flow {aim.flow_id!r}"


def _start(rows: Rows, order: Start, run: RunRow | None) -> Started | DeadLettered:
    asked = order.run_id
    first = rows.runs.load(RunId(order.name)) if order.name else None
    if first is not None:
        # Starts under one key are one start, whatever id each of them brings.
        run, order = first, replace(order, run_id=first.run_id)
    if run is not None and run.tenant != order.tenant:
        return refused("conflict", f"execution {order.run_id!r} belongs to another tenant")
    definition = _definition(rows, order, run)
    start = submission(order, definition or (NO_CLOSURE, order.version))
    match submit(rows, start, "", beside=order.beside):
        case Submitted(run_id, _, deduplicated):
            for name in (order.name, asked):
                if name and rows.runs.load(RunId(name)) is None:
                    rows.runs.give_name(name, run_id)
            if definition is None and not deduplicated:
                _fail(rows, order)
            return Started(run_id, deduplicated)
        case SubmitConflict():
            return refused("conflict", f"execution {order.run_id!r} exists with another flow or input")
        case Tombstoned():
            return refused("tombstoned", f"execution {order.run_id!r} existed and was deleted; its id stays taken")


def submission(order: Start, definition: tuple[str, str]) -> Submission:
    """A start by closure and version. Where there is no definition its name tells it from the starts of other flows."""
    closure, version = definition
    digest = start_digest(closure or encode([order.flow_id, version]).decode(), order.data)
    return Submission(
        order.run_id, digest, order.data, order.flow_id, closure, version, tenant=order.tenant, queue=order.queue,
    )  # fmt: skip


def _fail(rows: Rows, order: Start) -> None:
    """Whoever sent the start knows the id of the execution, and finds there why nothing became of it."""
    run = rows.runs.load(order.run_id)
    assert run is not None, "it was submitted in this transaction"
    finish(rows, run, Ending("error", error=no_flow(order)))


def no_flow(order: Start) -> bytes:
    """The error of an execution whose flow is not published, JSON bytes."""
    which = f" version {order.version!r}" if order.version else ""
    message = f"flow {order.flow_id!r}{which} is not published"
    return encode({"kind": "not_found", "code": -500, "message": message, "error_type": "flow_error", "path": []})


def _definition(rows: Rows, order: Start, run: RunRow | None) -> tuple[str, str] | None:
    """Closure and version. A run keeps what it began with: a second delivery is no conflict after a new version."""
    if run is not None:
        begun = rows.record.start(run).start
        if begun.flow_id == order.flow_id and order.version in ("", begun.flow_version):
            return begun.closure, begun.flow_version
    found = rows.shelf.flow(order.flow_id, order.version)
    return None if found is None else (found.closure, found.version)
