"""Why an execution does not move: every state has its reason, and a way out where there is one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plaita.control.explaining import Facts, Reason, reasons
from plaita.ports.inbox import DeadLetter, Message
from plaita.ports.processes import Process
from plaita.ports.queries import RunView, WaitView
from plaita.ports.values import RunId, Token, WaitId

NOW = 1_000_000
RUN = RunView(
    RunId("r"), "inc", "f", "1", "closure", "running", "default", "default", "", (), 0, (), NOW - 9_000, None, None,
    None, None, "", None, None, None, 3, 0, 0, False, True, None,
)  # fmt: skip
WAIT = WaitView(WaitId("@w#1"), "event", "w", "l:0/w", "paid", "k-1", "open", NOW - 500, NOW + 500, None, None)
HOLDER = Process("h", 42, ("default",), None, (), 0)
LETTER = DeadLetter(Message("m", b'{"execution_id": "r"}', 0), "unknown_resume_type", "no such type", NOW - 1)


def why(run: RunView = RUN, **facts: Any) -> list[Reason]:
    return reasons(Facts(run, facts.get("waits", ()), facts.get("processes", ()), facts.get("letters", ()), NOW))


def run(**fields: Any) -> RunView:
    return replace(RUN, **fields)


HELD = run(token=Token("h.n", 1, "inc"), due_ms=NOW + 5_000)
CASES: dict[str, tuple[str, list[Reason]]] = {
    "completed": ("completed", why(run(status="completed", ended_ms=NOW))),
    "cancelled": ("cancelled", why(run(status="cancelled", ended_ms=NOW))),
    "failed": ("failed", why(run(status="error", error=b'{"message": "no", "path": ["a", 0]}'))),
    "held by a live process": ("held", why(HELD, processes=(HOLDER,))),
    "held elsewhere": ("held_elsewhere", why(HELD)),
    "held by a dead process": ("held_by_dead", why(replace(HELD, due_ms=NOW - 1))),
    "backing off": ("backing_off", why(run(retry_ms=NOW + 1, due_ms=NOW + 1))),
    "a retry that nobody makes": ("no_worker", why(run(retry_ms=NOW - 1, due_ms=NOW - 1))),
    "waiting for an event": ("waits_for_event", why(run(status="suspended"), waits=(WAIT,))),
    "waiting for people": ("waits_for_approval", why(waits=(replace(WAIT, kind="hand", task_id="t"),))),
    "waiting for an answer": ("waits_for_callback", why(waits=(replace(WAIT, kind="hand", deadline_ms=None),))),
    "waiting for a time": ("waits_for_delay", why(waits=(replace(WAIT, kind="hand"),))),
    "waiting for a child": ("waits_for_child", why(waits=(replace(WAIT, kind="child"),))),
    "not before": ("not_before", why(run(status="queued", not_before_ms=NOW + 1, due_ms=NOW + 1))),
    "no slot": ("queued_for_slot", why(run(status="queued", slot=False))),
    "nobody looks": ("no_worker", why(run(status="queued", due_ms=NOW - 1))),
    "nobody looks at its queue": ("no_worker", why(run(queue="slow", due_ms=NOW - 1), processes=(HOLDER,))),
    "about to be taken": ("due", why(run(due_ms=NOW - 1), processes=(HOLDER,))),
    "left alone": ("left_alone", why(run(due_ms=NOW - 60_000), processes=(HOLDER,))),
    "blocked": ("blocked", why(run(blocked_reason="node type 'x' is missing", due_ms=NOW + 1))),
    "blocked for a person": ("blocked", why(run(blocked_reason="another request"))),
    "to be cancelled": ("cancel_requested", why(replace(HELD, cancel=True), processes=(HOLDER,))),
    "refused message": ("refused_message", why(run(status="completed"), letters=(LETTER,))[1:]),
}


@pytest.mark.parametrize(("code", "found"), CASES.values(), ids=list(CASES))
def test_every_state_has_its_reason(code: str, found: list[Reason]) -> None:
    assert found[0].code == code
    assert found[0].as_json().keys() == {"code", "text", "since", "until", "do"}


def test_each_open_wait_is_a_reason_and_a_late_one_says_so() -> None:
    late = replace(WAIT, address="b", deadline_ms=NOW - 1)
    first, second = why(run(status="suspended"), waits=(WAIT, late))
    assert first.do == (("event", "publish", "paid", "--key", "k-1", "--data", "{}"),)
    assert "its time is over" in second.text and "its time is over" not in first.text


def test_what_is_missing_is_named() -> None:
    [reason] = why(run(blocked_reason="node type 'x' is missing", due_ms=NOW + 1))
    assert "node type 'x' is missing" in reason.text
    assert reason.do[0] == ("worker", "--import", "FILE.py")


def test_a_process_bound_to_another_execution_takes_nothing_else() -> None:
    bound = replace(HOLDER, only=RunId("other"))
    assert why(run(due_ms=NOW - 1), processes=(bound,))[0].code == "no_worker"
    own = replace(HOLDER, only=RunId("r"))
    assert why(run(run_id=RunId("r.child"), due_ms=NOW - 1), processes=(own,))[0].code == "due"


def test_a_failed_execution_without_a_definition_is_not_offered_a_retry() -> None:
    [reason] = why(run(status="error", closure="", error=b'{"message": "not published"}'))
    assert ("retry", "r") not in reason.do
