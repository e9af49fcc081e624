"""The stable JSON shapes of executions and tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plaita.base.json import Json, decode
from plaita.base.moment import iso
from plaita.ports.queries import Entry, RunView, WaitView
from plaita.ports.tasks import Task

Shape = dict[str, Json]
VOTES_NAMED_MAX = 5


def execution_shape(run: RunView, waits: list[WaitView]) -> Shape:
    """An execution: ``execution_id flow_id flow_version status output error waits start_time end_time``."""
    shape: Shape = {
        "execution_id": run.run_id,
        "flow_id": run.flow_id,
        "flow_version": run.flow_version or None,
        "status": run.status,
        "output": None if run.output is None else decode(run.output),
        "error": None if run.error is None else decode(run.error),
        "waits": [wait_shape(wait) for wait in waits],
        "start_time": iso(run.submitted_ms),
        "end_time": iso(run.ended_ms),
    }
    extra: dict[str, Any] = {
        "business_key": run.business_key or None,
        "tags": list(run.tags) or None,
        "retry_at": iso(run.retry_ms),
        "not_before": iso(run.not_before_ms),
        "blocked_reason": run.blocked_reason or None,
        "parent_id": run.parent,
    }
    return shape | {key: value for key, value in extra.items() if value is not None}


def entry_shapes(entries: Sequence[Entry], after: int) -> list[Shape]:
    """History entries behind that number, ``{"seq", "at", "event", …}``. Where the store has let the oldest of them go,
    ``entries_gone`` comes first, under the number of the last that is gone, and counts them."""
    told: list[Shape] = [{"seq": e.seq, "at": iso(e.at_ms), **decode(e.data)} for e in entries]
    gone = entries[0].seq - 1 - after if entries else 0
    if gone > 0:
        told.insert(0, {"seq": after + gone, "at": told[0]["at"], "event": "entries_gone", "count": gone})
    return told


def wait_shape(wait: WaitView) -> Shape:
    """A wait: ``wait_id kind node since deadline`` and what it waits for."""
    shape: Shape = {
        "wait_id": wait.wait_id,
        "kind": wait_kind(wait),
        "node": wait.address,
        "since": iso(wait.since_ms),
        "deadline": iso(wait.deadline_ms),
    }
    if wait.task_id is not None:
        shape["task_id"] = wait.task_id
    if wait.kind == "event":
        shape["event_type"] = wait.event_type
        if wait.key is not None:
            shape["key"] = wait.key
    return shape


def wait_kind(wait: WaitView) -> str:
    """What people call it: approval, event, delay, child or callback."""
    return kind_of_wait(wait.kind, wait.deadline_ms, has_task=wait.task_id is not None)


def kind_of_wait(kind: str, deadline_ms: int | None, *, has_task: bool) -> str:
    """What people call a wait, armed or about to be. A delay is one that its time ends and nobody is asked about."""
    if has_task:
        return "approval"
    if kind == "hand":
        return "callback" if deadline_ms is None else "delay"
    return kind


def task_shape(task: Task) -> Shape:
    """A human task."""
    return {
        "task_id": task.task_id,
        "execution_id": task.run_id,
        "flow_id": task.flow_id,
        "node": task.node_id,
        "title": task.spec.title,
        "content": task.spec.content,
        "form": list(task.spec.form),
        "approvers": list(task.spec.approvers),
        "strategy": task.spec.strategy,
        "votes": [
            {"by": v.actor, "approved": v.approved, "comment": v.comment, "form": v.form, "at": iso(v.at_ms)}
            for v in task.votes
        ],
        "deadline": iso(task.deadline_ms),
        "status": task.status,
    }


def votes_missing(task: Shape) -> int:
    """How many approvals a task still needs."""
    count = len(set(task["approvers"]))
    needed = {"all": count, "majority": count // 2 + 1}.get(task["strategy"], 1) if count else 1
    return max(0, int(needed) - sum(bool(v["approved"]) for v in task["votes"]))


def may_vote(task: Shape) -> list[str]:
    """Those who are asked and have not voted; nobody when everybody may."""
    voted = {v["by"] for v in task["votes"]}
    return [name for name in task["approvers"] if name not in voted]


def ways_to_decide(task: Shape) -> list[tuple[str, ...]]:
    """The commands of those whose votes would do, without ``plaita``; the last one rejects."""
    people: list[tuple[str, ...]] = [("--by", name) for name in may_vote(task)[: votes_missing(task)]] or [()]
    approvals = [("approve", task["task_id"], *by) for by in people[:VOTES_NAMED_MAX]]
    return [*approvals, ("reject", task["task_id"], *people[0], "-m", "why")]
