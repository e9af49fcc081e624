"""What one vote does to a human task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from plaita.base.json import Json, decode, encode

Outcome = Literal["approved", "rejected"]


@dataclass(frozen=True, slots=True)
class Ballot:
    """One vote as cast. ``form`` is the filled-in form, JSON."""

    actor: str
    approved: bool
    comment: str
    form: Any
    at_ms: int


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """A task as read. Empty ``approvers`` admit everybody, and then any one vote decides."""

    status: str
    approvers: tuple[str, ...]
    strategy: Literal["any", "all", "majority"]
    votes: tuple[Ballot, ...]
    require_comments: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """The vote counts. ``missing`` more are needed at least; ``answer`` is the JSON bytes of a decided task."""

    ballot: Ballot
    missing: int
    outcome: Outcome | None
    answer: bytes | None


@dataclass(frozen=True, slots=True)
class NotOpen:
    status: str


@dataclass(frozen=True, slots=True)
class NotEntitled:
    actor: str
    approvers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HasVoted:
    actor: str


@dataclass(frozen=True, slots=True)
class CommentMissing:
    actor: str


VoteDecision: TypeAlias = Count | NotOpen | NotEntitled | HasVoted | CommentMissing


def decide_vote(
    task: TaskFacts, actor: str, approved: bool, comment: str, form: Any, now_ms: int
) -> VoteDecision:  # fmt: skip
    """Whether the vote counts, and what the task then is.

    ``any``: the first vote decides. ``all``: one rejection rejects, approved when every approver approved.
    ``majority``: approved by more than half of the approvers, rejected once that can no longer be reached.
    """
    if task.status != "open":
        return NotOpen(task.status)
    if task.approvers and actor not in task.approvers:
        return NotEntitled(actor, task.approvers)
    if any(v.actor == actor for v in task.votes):
        return HasVoted(actor)
    if task.require_comments and not comment.strip():
        return CommentMissing(actor)
    ballot = Ballot(actor, approved, comment, form, now_ms)
    votes = (*task.votes, ballot)
    outcome, missing = _tally(task, votes)
    return Count(ballot, missing, outcome, answer_of(outcome, votes) if outcome else None)


def _tally(task: TaskFacts, votes: tuple[Ballot, ...]) -> tuple[Outcome | None, int]:
    yes = sum(v.approved for v in votes)
    no = len(votes) - yes
    voters = len(set(task.approvers))
    if task.strategy == "any" or voters == 0:
        return ("approved" if votes[-1].approved else "rejected"), 0
    needed = voters if task.strategy == "all" else voters // 2 + 1
    if yes >= needed:
        return "approved", 0
    if no > voters - needed:
        return "rejected", 0
    return None, needed - yes


STRANGE: Final = f"final_decision of an answer to a task is one of {', '.join(get_args(Outcome))}"


def is_strange(answer: bytes) -> bool:
    """Whether the JSON of an answer names a decision in a word that is none: it would close a task undecided."""
    if b'"final_decision"' not in answer:
        return False
    said: Json = decode(answer)
    return isinstance(said, dict) and said.get("final_decision") not in (None, *get_args(Outcome))


def answer_of(outcome: Outcome, votes: tuple[Ballot, ...]) -> bytes:
    """The answer that wakes the wait: the documented decision event, and who decided last with what."""
    last = votes[-1]
    return encode(
        {
            "trigger_type": "approval_completed",
            "success": True,
            "final_decision": outcome,
            "approved": outcome == "approved",
            "approver": last.actor,
            "comment": last.comment,
            "form": last.form,
            "timestamp": last.at_ms,
            "approval_details": [_detail(v) for v in votes],
        }
    )


def _detail(vote: Ballot) -> dict[str, Any]:
    return {
        "approver_id": vote.actor,
        "decision": "approve" if vote.approved else "reject",
        "comments": vote.comment,
        "form": vote.form,
        "timestamp": vote.at_ms,
    }
