"""Answering waits, voting, cancelling, retrying, deleting, publishing events."""

from __future__ import annotations

from dataclasses import dataclass

from plaita.base.clock import Clock, new_id
from plaita.base.errors import Conflict, InputError, NotFound, ResumeRefused
from plaita.base.ids import check_texts
from plaita.base.json import Json, admit, encode
from plaita.control.looking import run_of, task_of
from plaita.policy.approval import (
    STRANGE,
    Ballot,
    Count,
    HasVoted,
    NotEntitled,
    NotOpen,
    TaskFacts,
    decide_vote,
    is_strange,
)
from plaita.ports.backend import Backend
from plaita.ports.events import Published
from plaita.ports.runs import (
    AlreadyResolved,
    AlreadyTerminal,
    Cancelled,
    CancelRequested,
    Deleted,
    NoRun,
    NoSuchWait,
    NotRetryable,
    NotTerminal,
    Woken,
)
from plaita.ports.tasks import (
    AlreadyDecided,
    AlreadyVoted,
    Changed,
    Decided,
    Decision,
    NotACandidate,
    NoTask,
    Recorded,
    Task,
    Vote,
)
from plaita.ports.values import RunId, WaitId

CHANGED_MAX = 20


@dataclass(frozen=True, slots=True)
class Verdict:
    """A vote as an actor casts it."""

    actor: str
    approved: bool
    comment: str = ""
    form: Json = None


async def decide(store: Backend, task_id: str, verdict: Verdict, clock: Clock) -> tuple[Task, Recorded | Decided]:
    """Vote on a task. Raises ``ResumeRefused`` when the vote cannot count, ``NotFound`` for an unknown task."""
    form = admit(verdict.form, "$.form")
    check_texts(actor=verdict.actor, comment=verdict.comment)
    for _ in range(CHANGED_MAX):
        task = await task_of(store, task_id)
        facts = _facts(task)
        counted = decide_vote(facts, verdict.actor, verdict.approved, verdict.comment, form, clock.now_ms())
        if not isinstance(counted, Count):
            raise ResumeRefused(*_refusal(task, counted))
        ballot = counted.ballot
        vote = Vote(ballot.actor, ballot.approved, ballot.comment, ballot.form, ballot.at_ms)
        answer = await store.decide(
            task_id, task.version, Decision(vote, counted.missing, counted.outcome, counted.answer)
        )
        match answer:
            case Recorded() | Decided():
                return task, answer
            case Changed():
                continue
            case AlreadyVoted(actor):
                raise ResumeRefused(f"{actor} has voted on task {task_id} already")
            case NotACandidate(actor, approvers):
                raise ResumeRefused(*_refusal(task, NotEntitled(actor, approvers)))
            case AlreadyDecided(status):
                raise ResumeRefused(*_refusal(task, NotOpen(status)))
            case NoTask():
                raise NotFound(f"there is no task {task_id!r} in {store.name}")
    raise Conflict(f"task {task_id} keeps changing", "try again")


def _facts(task: Task) -> TaskFacts:
    votes = tuple(Ballot(v.actor, v.approved, v.comment, v.form, v.at_ms) for v in task.votes)
    spec = task.spec
    return TaskFacts(task.status, spec.approvers, spec.strategy, votes, spec.require_comments)


def _refusal(task: Task, refused: object) -> tuple[str, str]:
    match refused:
        case NotOpen(status):
            return f"task {task.task_id} is {status}: nothing to vote on", f"plaita inspect {task.run_id}"
        case NotEntitled(actor, approvers):
            return f"{actor} is no approver of task {task.task_id}", f"approvers: {', '.join(approvers)}; use --by NAME"
        case HasVoted(actor):
            return f"{actor} has voted on task {task.task_id} already", ""
        case _:
            return f"task {task.task_id} needs a comment with the vote", "add -m TEXT"


async def resume(store: Backend, execution_id: str, wait: str, data: Json, actor: str) -> WaitId:
    """Answer an open wait by its id or node address; without one the execution must have exactly one.

    Raises ``ResumeRefused`` when there is no such open wait or it was answered before.
    """
    view = await run_of(store, execution_id)
    waits = await store.waits(view.run_id)
    chosen = [w for w in waits if wait in (w.wait_id, w.address)] if wait else waits
    if len(chosen) != 1:
        if not wait and len(waits) > 1:
            hint = "choose one: " + ", ".join(w.address for w in waits)
            raise ResumeRefused(f"execution {execution_id} has {len(waits)} open waits", hint)
        if not waits:
            raise ResumeRefused(f"execution {execution_id} ({view.status}) waits for nothing", "")
        hint = "open waits: " + ", ".join(w.address for w in waits)
        raise ResumeRefused(f"execution {execution_id} has no open wait {wait!r}", hint)
    said = encode(admit(data))
    if chosen[0].task_id is not None and is_strange(said):
        raise ResumeRefused(f"wait {chosen[0].address} cannot be answered with that: {STRANGE}")
    answer = await store.wake(view.run_id, chosen[0].wait_id, said, actor)
    match answer:
        case Woken():
            return chosen[0].wait_id
        case AlreadyResolved(by):
            raise ResumeRefused(f"wait {chosen[0].address} was answered before ({by.kind})")
        case NoSuchWait():
            raise ResumeRefused(f"wait {chosen[0].address} is gone: the execution moved on or was cancelled")


async def cancel(store: Backend, execution_id: str, actor: str) -> str:
    """End an execution; answers ``cancelled``, ``requested`` (a live process is told) or ``already STATUS``."""
    answer = await store.cancel(RunId(execution_id), actor)
    match answer:
        case Cancelled():
            return "cancelled"
        case CancelRequested():
            return "requested"
        case AlreadyTerminal(status):
            return f"already {status}"
        case NoRun():
            await run_of(store, execution_id)
            raise NotFound(f"there is no execution {execution_id!r} in {store.name}")


async def retry(store: Backend, execution_id: str) -> None:
    """Open a failed execution again at the failed node. Raises ``Conflict`` when it cannot be."""
    answer = await store.reopen(RunId(execution_id))
    match answer:
        case NoRun():
            raise NotFound(f"there is no execution {execution_id!r} in {store.name}", "plaita ps lists executions")
        case NotRetryable(reason):
            raise Conflict(
                f"execution {execution_id} cannot be retried: {_why_not(reason)}", f"plaita inspect {execution_id}"
            )
        case _:
            return


def _why_not(reason: str) -> str:
    match reason:
        case "wakeups_exhausted":
            return "it was retried as often as it may be"
        case "deterministic_failures":
            return "it failed in the same way as often as it may"
        case "no_definition":
            return "its flow was not published when it was started; publish it and start again under another id"
        case _:
            return f"it is {reason.removeprefix('status_')}; only a failed one can"


async def delete(store: Backend, execution_id: str) -> None:
    """Remove an ended execution. Raises ``Conflict`` while it lives."""
    answer = await store.delete(RunId(execution_id))
    match answer:
        case NoRun():
            raise NotFound(f"there is no execution {execution_id!r} in {store.name}", "plaita ps lists executions")
        case NotTerminal(status):
            raise Conflict(f"execution {execution_id} is {status}", f"plaita cancel {execution_id} first")
        case Deleted():
            return


async def publish_event(store: Backend, event_type: str, data: Json, key: str | None, event_id: str = "") -> Published:
    """Publish an event; the same id twice is one event."""
    check_texts(event_type=event_type, key=key or "", event_id=event_id)
    if not event_type.strip():
        raise InputError("$.event_type", "an event needs a type")
    return await store.publish(event_id or new_id(), event_type, key, encode(admit(data)))
