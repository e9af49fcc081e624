"""Human tasks: what waits for a person, and their votes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from plaita.ports.values import RunId, WaitId

Strategy = Literal["any", "all", "majority"]


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task as the machine opens it. ``form`` is a list of field descriptions."""

    title: str
    content: str
    approvers: tuple[str, ...]
    strategy: Strategy = "any"
    form: tuple[Any, ...] = ()
    allow_comments: bool = True
    require_comments: bool = False


@dataclass(frozen=True, slots=True)
class Vote:
    actor: str
    approved: bool
    comment: str
    form: Any
    at_ms: int


@dataclass(frozen=True, slots=True)
class Task:
    """A task as stored. ``version`` grows with every vote; ``task_id`` is random and short enough to be typed."""

    task_id: str
    run_id: RunId
    wait_id: WaitId
    flow_id: str
    node_id: str
    spec: TaskSpec
    status: Literal["open", "decided", "closed"]
    version: int
    created_ms: int
    deadline_ms: int | None
    votes: tuple[Vote, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Decision:
    """What a vote does, decided by ``policy.approval`` from the task as read.

    ``answer`` is the JSON bytes that wake the wait when the task is decided, ``None`` while votes are missing.
    """

    vote: Vote
    missing: int
    outcome: Literal["approved", "rejected"] | None
    answer: bytes | None


@dataclass(frozen=True, slots=True)
class Recorded:
    missing: int


@dataclass(frozen=True, slots=True)
class Decided:
    outcome: Literal["approved", "rejected"]


@dataclass(frozen=True, slots=True)
class AlreadyVoted:
    actor: str


@dataclass(frozen=True, slots=True)
class NotACandidate:
    actor: str
    approvers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AlreadyDecided:
    status: str


@dataclass(frozen=True, slots=True)
class Changed:
    """The task moved on since it was read: read it again."""

    version: int


@dataclass(frozen=True, slots=True)
class NoTask:
    task_id: str


DecideAnswer: TypeAlias = Recorded | Decided | AlreadyVoted | NotACandidate | AlreadyDecided | Changed | NoTask


class TaskStore(Protocol):
    """Tasks are written by the settle that arms their wait and closed by whatever closes it."""

    async def task(self, task_id: str) -> Task | None:
        """One task with its votes."""

    async def inbox(self, *, actor: str = "", limit: int = 100, cursor: str = "") -> tuple[list[Task], str]:
        """Open tasks, oldest first, of one approver or of all; the cursor of the next page or an empty text."""

    async def decide(self, task_id: str, version: int, decision: Decision) -> DecideAnswer:
        """Record a vote against the version that was read; a decided task wakes its wait in the same step.

        An empty ``approvers`` admits every actor.
        """
