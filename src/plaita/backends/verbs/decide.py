"""decide: a vote on an open task; a decided task wakes its wait in the same step."""

from __future__ import annotations

from dataclasses import replace

from plaita.backends.rows import Rows
from plaita.backends.verbs.wake import wake
from plaita.ports.runs import Woken
from plaita.ports.tasks import (
    AlreadyDecided,
    AlreadyVoted,
    Changed,
    DecideAnswer,
    Decided,
    Decision,
    NotACandidate,
    NoTask,
    Recorded,
)  # fmt: skip


def decide(rows: Rows, task_id: str, version: int, decision: Decision) -> DecideAnswer:
    """Write the vote unless the task is closed, moved on, or the actor may not vote or has voted."""
    task = rows.tasks.load(task_id)
    actor = decision.vote.actor
    if task is None:
        return NoTask(task_id)
    if task.status != "open":
        return AlreadyDecided(task.status)
    if any(v.actor == actor for v in task.votes):
        return AlreadyVoted(actor)
    approvers = task.spec.approvers
    if approvers and actor not in approvers:
        return NotACandidate(actor, approvers)
    if task.version != version:
        return Changed(task.version)
    voted = replace(task, version=version + 1, votes=(*task.votes, decision.vote))
    if decision.outcome is None or decision.answer is None:
        rows.tasks.save(voted)
        return Recorded(decision.missing)
    if not isinstance(wake(rows, task.run_id, task.wait_id, decision.answer, actor), Woken):
        return AlreadyDecided("closed")
    rows.tasks.save(replace(voted, status="decided"))
    return Decided(decision.outcome)
