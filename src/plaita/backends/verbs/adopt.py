"""adopt: a run that began elsewhere goes on here, from a state that somebody else kept."""

from __future__ import annotations

from plaita.backends.rows import Rows
from plaita.backends.verbs.settle import settle
from plaita.backends.verbs.submit import submit
from plaita.ports.runs import Adopted, Adoption, Step, Submission, SubmitConflict, Submitted, Tombstoned
from plaita.ports.values import Token


def adopt(rows: Rows, start: Submission, state: Adoption, durability: str) -> Adopted | SubmitConflict | Tombstoned:
    """A new run and its first settle in one step: nobody can claim it in between. An id that exists is a conflict."""
    if rows.runs.load(start.run_id) is not None:
        return SubmitConflict(start.run_id)
    submitted = submit(rows, start, durability)
    if not isinstance(submitted, Submitted):
        return submitted
    run = rows.runs.load(start.run_id)
    assert run is not None, "it was submitted in this transaction"
    token = Token(f"adopt.{run.incarnation}", run.generation + 1, run.incarnation)
    run.nonce, run.generation, run.status, run.slot = token.nonce, token.generation, "running", True
    settle(rows, Step(start.run_id, token, 1, "adopt", state.frames, state.next, arms=state.arms))
    return Adopted(start.run_id, submitted.incarnation)
