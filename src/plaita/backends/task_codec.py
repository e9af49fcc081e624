"""What a person is asked and how they voted, as JSON bytes."""

from __future__ import annotations

from plaita.base.json import decode, encode
from plaita.ports.tasks import TaskSpec, Vote


def spec_bytes(spec: TaskSpec) -> bytes:
    return encode(
        [
            spec.title, spec.content, list(spec.approvers), spec.strategy, list(spec.form), spec.allow_comments,
            spec.require_comments,
        ]
    )  # fmt: skip


def spec_of(data: bytes) -> TaskSpec:
    title, content, approvers, strategy, form, allow, require = decode(data)
    return TaskSpec(title, content, tuple(approvers), strategy, tuple(form), allow, require)


def votes_bytes(votes: tuple[Vote, ...]) -> bytes:
    return b"[" + b",".join(vote_bytes(vote) for vote in votes) + b"]"


def votes_of(data: bytes) -> tuple[Vote, ...]:
    return tuple(Vote(*vote) for vote in decode(data))


def vote_bytes(vote: Vote) -> bytes:
    return encode([vote.actor, vote.approved, vote.comment, vote.form, vote.at_ms])


def vote_of(data: bytes) -> Vote:
    return Vote(*decode(data))
