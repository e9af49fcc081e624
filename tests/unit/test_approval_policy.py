"""What one vote does to a task."""

from typing import Literal

import pytest

from plaita.base.json import decode
from plaita.policy.approval import (
    Ballot,
    CommentMissing,
    Count,
    HasVoted,
    NotEntitled,
    NotOpen,
    TaskFacts,
    decide_vote,
)  # fmt: skip

Strategy = Literal["any", "all", "majority"]


def facts(
    strategy: Strategy, approvers: int, votes: str = "", *, status: str = "open", comments: bool = False
) -> TaskFacts:  # fmt: skip
    """``votes`` is a text of ``y`` and ``n``, cast in the order of the approvers p0, p1, ..."""
    names = tuple(f"p{n}" for n in range(approvers))
    cast = tuple(Ballot(f"p{n}", letter == "y", "", None, n) for n, letter in enumerate(votes))
    return TaskFacts(status, names, strategy, cast, comments)


@pytest.mark.parametrize(
    ("strategy", "approvers", "votes", "outcome", "missing"),
    [
        ("any", 3, "y", "approved", 0),
        ("any", 3, "n", "rejected", 0),
        ("all", 2, "y", None, 1),
        ("all", 2, "yy", "approved", 0),
        ("all", 3, "yn", "rejected", 0),
        ("majority", 3, "y", None, 1),
        ("majority", 3, "yy", "approved", 0),
        ("majority", 3, "yn", None, 1),
        ("majority", 3, "ynn", "rejected", 0),
        ("majority", 4, "yy", None, 1),
        ("majority", 4, "nn", "rejected", 0),
        ("majority", 4, "ynn", "rejected", 0),
        ("majority", 1, "y", "approved", 0),
        ("all", 0, "y", "approved", 0),
        ("majority", 0, "n", "rejected", 0),
    ],
)
def test_the_last_vote_decides_as_the_strategy_says(
    strategy: Strategy, approvers: int, votes: str, outcome: str | None, missing: int
) -> None:
    task = facts(strategy, approvers, votes[:-1])
    got = decide_vote(task, f"p{len(votes) - 1}", votes[-1] == "y", "", None, 9)
    assert isinstance(got, Count)
    assert (got.outcome, got.missing, got.answer is None) == (outcome, missing, outcome is None)


def test_a_closed_task_takes_no_vote() -> None:
    assert decide_vote(facts("any", 1, status="decided"), "p0", True, "", None, 9) == NotOpen("decided")


def test_only_approvers_vote_and_only_once() -> None:
    task = facts("all", 2, "y")
    assert decide_vote(task, "eve", True, "", None, 9) == NotEntitled("eve", ("p0", "p1"))
    assert decide_vote(task, "p0", False, "", None, 9) == HasVoted("p0")


def test_a_required_comment_must_say_something() -> None:
    task = facts("any", 1, comments=True)
    assert decide_vote(task, "p0", True, "  ", None, 9) == CommentMissing("p0")
    assert isinstance(decide_vote(task, "p0", True, "fine", None, 9), Count)


def test_the_answer_tells_the_decision_and_every_vote() -> None:
    got = decide_vote(facts("all", 2, "y"), "p1", False, "no", {"why": 1}, 9)
    assert isinstance(got, Count)
    answer = decode(got.answer or b"null")
    assert (answer["final_decision"], answer["approved"], answer["approver"]) == ("rejected", False, "p1")
    assert (answer["comment"], answer["form"], answer["timestamp"]) == ("no", {"why": 1}, 9)
    assert [(d["approver_id"], d["decision"]) for d in answer["approval_details"]] == [
        ("p0", "approve"),
        ("p1", "reject"),
    ]
