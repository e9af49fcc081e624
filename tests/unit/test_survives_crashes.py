"""``assert_survives_crashes``: sound flows pass, and each planted fault is caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest

from plaita.backends.memory import MemoryBackend
from plaita.server.worker.opencalls import OpenCalls
from plaita.testing import (
    Advance,
    Approve,
    FlowRun,
    FlowTest,
    Jump,
    NotAsExpected,
    Publish,
    Resume,
    assert_survives_crashes,
)
from plaita.testing.crashes import NotSurvived
from tests.support.flows import chain, failing, flow_of, outside

PAY = chain(outside("pay", input="$INPUT.amount"))
MAIL = {"mail": "sent"}


def pays() -> dict[str, Any]:
    return {"pay": {"paid": True}}


SOUND: dict[str, tuple[dict[str, Any], Any, dict[str, Any]]] = {
    "nothing but nodes of the machine": (chain({"id": "n", "type": "assignment", "output": 1}), (), {}),
    "calls one after another": (chain(outside("pay"), outside("mail")), (), pays() | MAIL),
    "an error": (failing(), (), {}),
    "a call that fails and is retried": (
        chain(outside("pay", errorHandler={"retry": {"attempts": 2}})), (), {"pay": [OSError("busy"), 1]},
    ),
    "an approval in a loop": (
        chain({"id": "l", "type": "loop", "collection": [1, 2], "childFlow": chain(
            {"id": "ask", "type": "approval", "approval_title": "t", "approvers": ["ann"]},
            output="$NODE.ask.event_data.final_decision",
        )}), [Approve("ann"), Approve("ann")], {},
    ),
    "calls side by side": (
        chain({"id": "m", "type": "map", "collection": [1, 2, 3], "maxConcurrency": 3,
               "childFlow": chain(outside("pay", input="$INPUT.item"), outside("mail"))}), (), pays() | MAIL,
    ),
    "an event and a delay": (
        chain({"id": "paid", "type": "event", "event_type": "paid", "correlation": "o-1"},
              {"id": "later", "type": "delay", "delay_seconds": 60}, outside("mail"), output="$NODE.paid.event_data"),
        [Publish("paid", {"n": 1}, "o-1"), Jump()], MAIL,
    ),
    "a deadline that passes": (
        chain({"id": "paid", "type": "event", "event_type": "paid", "subscription_timeout": 60},
              output="$NODE.paid.status"), [Advance(61)], {},
    ),
    "a run that still waits": (chain({"id": "paid", "type": "event", "event_type": "paid"}), [Advance(1)], {}),
    "a branch that is left behind": (
        chain({"id": "p", "type": "parallel", "joinCondition": {"type": "none"}, "branches": [
            {"name": "b", "childFlow": chain(outside("mail"))}]}, output=1), (), MAIL,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("flow", "answers", "mocks"), SOUND.values(), ids=list(SOUND))
def test_a_sound_flow_survives(flow: dict[str, Any], answers: Any, mocks: dict[str, Any]) -> None:
    survival = assert_survives_crashes(flow_of(flow), {"amount": 3}, answers=answers, mocks=mocks)
    assert survival.worlds == 3 * survival.settles + 4


def test_only_the_calls_under_way_are_repeated_and_each_at_most_once_a_kill() -> None:
    survival = assert_survives_crashes(flow_of(PAY), {"amount": 3}, mocks=pays())
    # The settle that carries the result is cut in front of it once by itself and once among all.
    assert (survival.settles, survival.repeated) == (2, 2)


def test_answers_may_be_a_function_of_test_and_run() -> None:
    def answers(test: FlowTest, run: FlowRun) -> None:
        run.waits_for("paid")
        run.resume({"ok": 1})

    flow = chain({"id": "paid", "type": "event", "event_type": "paid"}, output="$NODE.paid.event_data")
    assert assert_survives_crashes(flow, answers=answers).settles == 2


def counting() -> Mapping[str, Any]:
    numbers = count()
    return {"pay": lambda fields: next(numbers)}


def moody() -> Mapping[str, Any]:
    seen: Counter[str] = Counter()

    def pay(fields: dict[str, Any], execution: Any) -> Any:
        seen[execution.idempotency_key] += 1
        if seen[execution.idempotency_key] > 1:
            raise ValueError("paid already")
        return 1

    return {"pay": pay}


TELLS_TIME = chain({"id": "n", "type": "assignment", "output": "$F.now()"}, outside("pay"), output="$NODE.n")
FAULTY: dict[str, tuple[dict[str, Any], Callable[[], Mapping[str, Any]], str]] = {
    "a node that answers a repetition with something else": (PAY, counting, r"before settle 2 of 2 .*\n  output"),
    "a node that refuses a repetition": (PAY, moody, r"status:\n    - \"completed\"\n    \+ \"error\""),
    "a flow whose result depends on the time": (TELLS_TIME, pays, r"before settle 1 .*\n  output:\n    - \"2030"),
    "a call whose request depends on the time": (
        chain(outside("pay", input="$F.now()"), output=1), pays, "what pay is asked for, under one key",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("flow", "mocks", "told"), FAULTY.values(), ids=list(FAULTY))
def test_a_faulty_flow_is_caught(flow: dict[str, Any], mocks: Callable[[], Mapping[str, Any]], told: str) -> None:
    with pytest.raises(NotSurvived, match=told):
        assert_survives_crashes(flow_of(flow), {"amount": 3}, mocks=mocks)


def test_a_failure_says_how_to_repeat_it_and_that_repeats_it() -> None:
    with pytest.raises(NotSurvived) as found:
        assert_survives_crashes(flow_of(PAY), mocks=counting)
    assert str(found.value).endswith("performed again: pay\nto repeat it: assert_survives_crashes(…, place='before-2')")
    with pytest.raises(NotSurvived, match="before settle 2 of 2"):
        assert_survives_crashes(flow_of(PAY), mocks=counting, place="before-2")
    assert assert_survives_crashes(flow_of(PAY), mocks=counting, place="after-1").worlds == 1


def test_only_what_is_compared_must_be_the_same() -> None:
    assert assert_survives_crashes(flow_of(TELLS_TIME), mocks=pays(), compared=lambda output: output[:4]).worlds > 0


def test_an_answer_that_is_not_right_is_told_before_any_crash() -> None:
    with pytest.raises(NotAsExpected, match="undisturbed, without any crash: there is no open task"):
        assert_survives_crashes(chain(output=1), answers=[Approve("ann")])


def test_a_mock_that_keeps_a_state_over_runs_is_told_apart_from_a_crash() -> None:
    with pytest.raises(NotAsExpected, match="two undisturbed runs differ"):
        assert_survives_crashes(flow_of(PAY), mocks=counting())


def test_a_place_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="'behind-2' is no place"):
        assert_survives_crashes(chain(output=1), place="behind-2")


def test_many_places_are_thinned_out() -> None:
    nodes = [outside(f"n{i}") for i in range(10)]
    mocks = {f"n{i}": i for i in range(10)}
    survival = assert_survives_crashes(flow_of(chain(*nodes)), mocks=mocks, places_max=5)
    assert (survival.settles, survival.worlds) == (11, 5 + 4)


# Faults of the system itself: they are caught as well.


def test_a_system_that_reads_an_answer_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = MemoryBackend.wake

    async def wake(store: MemoryBackend, run_id: Any, wait_id: Any, data: bytes, actor: str = "") -> Any:
        waits = await store.waits(run_id)
        return await real(store, run_id, waits[0].wait_id if waits else wait_id, data, actor)

    monkeypatch.setattr(MemoryBackend, "wake", wake)
    asks = [{"id": f"w{n}", "type": "event", "event_type": "x"} for n in range(2)]
    with pytest.raises(NotSurvived, match="everything from outside comes twice"):
        assert_survives_crashes(chain(*asks), answers=[Resume({"n": 1}, at="w0")])


def test_a_system_that_repeats_a_finished_call_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    allow, begun = OpenCalls.allow, []

    def twice(calls: OpenCalls, found: Any) -> None:
        begun.extend(found)
        allow(calls, [*begun])

    monkeypatch.setattr(OpenCalls, "allow", twice)
    with pytest.raises(AssertionError, match=r"was performed again|without a crash under way"):
        assert_survives_crashes(flow_of(chain(outside("a"), outside("b"))), mocks={"a": 1, "b": 2})
