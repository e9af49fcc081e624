"""``FlowTest``: what an author can make happen to a flow, and what is said when it does something else."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, ClassVar

import pytest

from plaita.base.errors import InputError, ResumeRefused
from plaita.core.errors import FlowResultError
from plaita.core.flow import Flow
from plaita.node.basic import Node
from plaita.testing import Always, FlowTest, Hangs, Later, NotAsExpected
from tests.support.flows import chain, flow_of, outside

LEAVE = chain(
    {"id": "ask", "type": "approval", "approval_title": "three days", "approvers": ["ann", "bob", "cleo"]}
    | {"approval_strategy": "majority", "subscription_timeout": 3600},
    output={"status": "$NODE.ask.status", "decision": "$NODE.ask.event_data.final_decision"},
)
PAID = chain(
    {"id": "paid", "type": "event", "event_type": "paid", "correlation": "$INPUT.order"},
    output="$NODE.paid.event_data.amount",
)
BOTH = chain(
    {
        "id": "fan",
        "type": "parallel",
        "branches": [
            {"name": name, "childFlow": chain({"id": "ask", "type": "approval", "approval_title": name})}
            for name in ("left", "right")
        ],
    },
    output=1,
)


class Patient(Node):
    """Asynchronous, and not at once."""

    node_type: ClassVar[str] = "patient"
    of: Any = None

    async def arun(self, execution: Any) -> Any:
        await asyncio.sleep(0)
        return [execution.evaluate(self.of), asyncio.get_running_loop().is_running()]


def calling(**fields: Any) -> Flow:
    return flow_of(chain(outside("pay", **fields)))


def loop(body: dict[str, Any], times: int = 3) -> Flow:
    return flow_of(chain({"id": "each", "type": "map", "collection": list(range(times)), "childFlow": chain(body)}))


def test_a_flow_without_a_wait_runs_to_its_output() -> None:
    run = FlowTest(chain({"id": "n", "type": "assignment", "output": "$( $INPUT.a + $INPUT.b )"})).start({"a": 1}, b=2)
    assert (run.output, run.path, run.status) == (3, ["start", "n", "end"], "completed")


def test_an_input_that_violates_its_type_is_refused_as_everywhere() -> None:
    flow = chain(inputType={"type": "object", "properties": {"a": {"type": "number"}}}, output=1)
    with pytest.raises(InputError, match=r"\$\.a"):
        FlowTest(flow).start(a="much")


MOCKS: dict[str, tuple[Any, Any]] = {
    "a value": ({"ok": True}, {"ok": True}),
    "a list as a value": (Always([1, 2]), [1, 2]),
    "successive answers": ([7], 7),
    "a function of the fields": (lambda fields: fields["input"] + 1, 6),
    "a function of fields and execution": (lambda fields, execution: execution.attempt, 1),
    "an answer that takes its time": (Later(60, 4), 4),
}


@pytest.mark.parametrize(("mock", "output"), MOCKS.values(), ids=list(MOCKS))
def test_a_node_answers_what_its_mock_says(mock: Any, output: Any) -> None:
    assert FlowTest(calling(input=5), mocks={"pay": mock}).start().output == output


def test_an_asynchronous_function_of_a_mock_waits_in_virtual_time() -> None:
    async def patient(_: dict[str, Any]) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(86_400):
                await asyncio.Event().wait()
        return "tomorrow"

    test = FlowTest(flow_of(chain(outside("pay"), timeout="P2D")), mocks={"pay": patient})
    before = test.now
    assert test.start().output == "tomorrow"
    assert (test.now - before).days == 1


def test_what_a_node_was_given_can_be_asked_call_by_call() -> None:
    flow = loop(outside("pay", input={"n": "$INPUT.item", "to": "dora"}))
    run = FlowTest(flow, mocks={"pay": lambda fields: fields["input"]["n"] * 10}).start()
    assert run.output == [0, 10, 20]
    assert run.calls("pay") == [{"input": {"n": n, "to": "dora"}} for n in range(3)]
    assert run.calls("each:1/pay") == [{"input": {"n": 1, "to": "dora"}}]
    assert [call.label for call in run.made] == ["each/pay"] * 3


def test_the_mock_of_an_address_wins_over_that_of_an_id() -> None:
    mocks = {"pay": "any", "each/pay": "in the loop", "each:1/pay": "in round one"}
    assert FlowTest(loop(outside("pay")), mocks=mocks).start().output == ["in the loop", "in round one", "in the loop"]


def test_an_exception_of_a_mock_fails_the_node() -> None:
    run = FlowTest(calling(), mocks={"pay": ValueError("no money")}).start()
    assert (run.error["kind"], run.error["path"]) == ("node_error", ["pay"])
    assert "no money" in run.error["message"]


def test_a_business_error_of_a_mock_ends_the_flow_with_its_code() -> None:
    run = FlowTest(calling(), mocks={"pay": FlowResultError("E7", "refused")}).start()
    assert (run.error["kind"], run.error["code"]) == ("error_result", "E7")


def test_the_backoff_of_a_retry_passes_at_once_and_in_virtual_time() -> None:
    flow = calling(input=1, errorHandler={"retry": {"attempts": 2, "base": "PT10M", "cap": "PT1H"}})
    test = FlowTest(flow, mocks={"pay": [ConnectionError, ConnectionError("busy"), "paid"]})
    before = test.now
    run = test.start()
    assert run.output == "paid"
    assert (test.now - before).total_seconds() == 30 * 60
    assert [call.attempt for call in run.made] == [1, 2, 3]
    assert len({call.key for call in run.made}) == 1
    assert run.path == ["start", "pay", "end"]


def test_a_call_that_hangs_is_ended_by_the_timeout_of_its_node() -> None:
    flow = calling(timeout="PT5M", timeoutHandler={"strategy": "continue-with", "defaultValue": "late"})
    assert FlowTest(flow, mocks={"pay": Hangs()}).start().output == "late"


def test_one_call_more_than_there_are_answers_fails_the_test() -> None:
    with pytest.raises(NotAsExpected, match=r"each:2/pay is called once more, and its mock 'pay' has 2 answers"):
        FlowTest(loop(outside("pay")), mocks={"pay": [1, 2]}).start()


def test_an_assertion_in_a_mock_fails_the_test_and_not_the_node() -> None:
    def check(fields: dict[str, Any]) -> None:
        raise AssertionError(f"asked for {fields}")

    flow = calling(input=5, errorHandler={"strategy": "continue"})
    with pytest.raises(AssertionError, match=r"asked for \{'input': 5\}"):
        FlowTest(flow, mocks={"pay": check}).start()


def test_a_node_with_an_effect_needs_a_mock_or_a_permission() -> None:
    with pytest.raises(
        NotAsExpected, match=r"pay \(outside\) is performed, and there is no mock for it.*real=\{'pay'\}"
    ):
        FlowTest(calling(input=5)).start()


@pytest.mark.parametrize("real", [True, "pay", {"pay"}, {"outside"}], ids=str)
def test_a_node_runs_as_it_is_where_that_is_allowed(real: Any) -> None:
    run = FlowTest(calling(input="$INPUT.n"), real=real).start(n=5)
    assert run.output == 5
    assert run.calls("pay") == [{"input": 5}]


def test_an_asynchronous_node_that_runs_as_it_is_has_a_real_loop() -> None:
    flow = flow_of(chain({"id": "p", "type": "patient", "of": "$INPUT.n"}), Patient)
    assert FlowTest(flow, real={"p"}).start(n=5).output == [5, True]


def test_a_script_runs_as_it_is_or_not_at_all() -> None:
    flow = chain({"id": "double", "type": "code", "code": "def run(n):\n    return 2 * n\n", "input": "$INPUT.n"})
    run = FlowTest(flow, real={"code"}).start(n=21)
    assert (run.output, run.calls("double")) == (42, [{"input": 21}])
    assert FlowTest(flow, mocks={"double": 0}).start(n=21).output == 0


def test_a_request_is_mocked_with_the_fields_the_flow_writes() -> None:
    request = {"id": "get", "type": "http", "url": "http://shop/{% $INPUT.id %}", "query": {"all": True}}
    run = FlowTest(chain(request, output="$NODE.get.data"), mocks={"get": {"status": 200, "data": [1]}}).start(id="o-1")
    assert run.output == [1]
    assert run.calls("get") == [{"url": "http://shop/o-1", "query": {"all": True}}]


def test_a_sub_flow_and_a_wait_may_be_mocked_too() -> None:
    sub = {"id": "sub", "type": "child", "input": {"n": "$INPUT.n"}, "childFlow": chain(outside("pay"))}
    ask = {"id": "ask", "type": "approval", "approval_title": "really?"}
    flow = flow_of(chain(sub, ask, output=["$NODE.sub", "$NODE.ask.status"]))
    run = FlowTest(flow, mocks={"sub": lambda fields: fields["input"]["n"], "ask": {"status": "completed"}}).start(n=3)
    assert run.output == [3, "completed"]


def test_a_mocked_branching_node_goes_where_its_mock_says() -> None:
    flow = {
        "nodes": [
            {"id": "start", "type": "start", "next": "if"},
            {"id": "if", "type": "if", "condition": {"field": 1, "operator": "eq", "value": 1}}
            | {"next": "yes", "elseNext": "no"},
            {"id": "yes", "type": "end", "output": "yes"},
            {"id": "no", "type": "end", "output": "no"},
        ]
    }
    assert FlowTest(flow, mocks={"if": "no"}).start().output == "no"


WRONG_NAMES = {
    "pya": r"no node 'pya' \(did you mean 'pay'\?\)",
    "each/buy": "no node 'each/buy'",
    "start": "can have no mock: it is where a flow begins or ends",
}


@pytest.mark.parametrize(("name", "message"), WRONG_NAMES.items())
def test_a_mock_of_something_else_is_told_before_anything_runs(name: str, message: str) -> None:
    with pytest.raises(NotAsExpected, match=message):
        FlowTest(loop(outside("pay")), mocks={name: 1})


def test_votes_are_cast_until_the_task_is_decided() -> None:
    run = FlowTest(LEAVE).start()
    assert run.waits_for("approval")["node"] == "ask"
    assert run.approve(by="cleo") == "recorded"
    assert run.approve(comment="enjoy") == "approved"
    assert run.output == {"status": "completed", "decision": "approved"}


def test_a_vote_that_cannot_count_is_refused() -> None:
    with pytest.raises(ResumeRefused, match="dora is no approver"):
        FlowTest(LEAVE).start().reject(by="dora")


def test_with_several_open_tasks_one_is_chosen_by_its_node() -> None:
    run = FlowTest(BOTH).start()
    with pytest.raises(NotAsExpected, match="several tasks; at=NODE chooses"):
        run.approve()
    run.approve(at="fan:left/ask")
    run.reject()
    assert run.output == 1


def test_an_event_wakes_the_run_that_waits_for_its_key() -> None:
    test = FlowTest(PAID)
    runs = [test.start(order=order) for order in ("o-1", "o-2")]
    assert test.publish("paid", {"amount": 12}, key="o-2") == 1
    assert runs[1].output == 12
    assert runs[0].waits_for("paid")["key"] == "o-1"


def test_a_wait_is_answered_by_hand() -> None:
    run = FlowTest(PAID).start(order="o-1")
    run.resume({"amount": 3}, at="paid")
    assert run.output == 3


def test_a_deadline_passes_when_the_test_lets_time_pass() -> None:
    test = FlowTest(LEAVE)
    run = test.start()
    test.advance(minutes=59)
    run.waits_for("ask")
    test.advance(minutes=1)
    assert run.output["status"] == "timeout"


def test_a_run_finishes_through_every_delay_and_deadline() -> None:
    delays = [{"id": f"d{n}", "type": "delay", "delay_seconds": 86_400} for n in range(30)]
    test = FlowTest(chain(*delays, output="done"), now="2030-01-01")
    assert test.start().finish().output == "done"
    assert test.now.isoformat() == "2030-01-31T00:00:00+00:00"


def test_time_jumps_to_what_is_due_next_and_says_how_far() -> None:
    test = FlowTest(LEAVE)
    test.start()
    assert test.jump().total_seconds() == 3600
    with pytest.raises(NotAsExpected, match="no delay and no deadline"):
        test.jump()


def test_a_run_that_waits_without_a_deadline_does_not_finish() -> None:
    with pytest.raises(NotAsExpected, match=r"does not end by itself.*\n.*event 'paid' with the key 'o-1' at paid"):
        FlowTest(PAID).start(order="o-1").finish()


def test_a_run_is_cancelled_and_a_failed_one_opened_again() -> None:
    run = FlowTest(PAID).start(order="o-1")
    run.cancel()
    assert run.status == "cancelled"
    again = FlowTest(calling(), mocks={"pay": [ValueError("no"), "paid"]}).start()
    assert again.status == "error"
    again.retry()
    assert again.output == "paid"


def test_time_zone_environment_and_moment_are_those_of_the_test() -> None:
    flow = chain(
        {"id": "n", "type": "assignment", "output": "$F.now()"},
        {"id": "e", "type": "assignment", "output": "$ENV.STAGE"},
        output=["$NODE.n", "$NODE.e"],
        expose_env=["STAGE"],
    )
    test = FlowTest(flow, now="2030-06-01T12:00:00Z", timezone="Asia/Shanghai", env={"STAGE": "test"})
    assert test.start().output == ["2030-06-01 20:00:00", "test"]


def test_the_same_test_takes_the_same_steps() -> None:
    def play() -> tuple[Any, ...]:
        flow = calling(errorHandler={"retry": {"attempts": 3, "base": 1000, "jitter": 1}})
        test = FlowTest(flow, mocks={"pay": [OSError(), OSError(), 1]})
        run = test.start()
        return run.id, run.history, test.now

    assert play() == play()


async def test_a_test_may_stand_in_a_coroutine() -> None:
    run = FlowTest(LEAVE).start()
    await asyncio.sleep(0)
    run.reject(by="ann")
    run.reject(by="bob")
    assert run.output["decision"] == "rejected"


STATES: dict[str, tuple[dict[str, Any], str]] = {
    "completed": (chain(output={"a": 1}), r'the run completed with \{"a": 1\}'),
    "failed": (chain({"id": "n", "type": "assignment", "output": "$( 1 / 0 )"}), r"the run failed at n: .*node_error"),
    "waiting": (LEAVE, "the run waits for\n  an approval at ask, majority of ann, bob, cleo, until 2030-"),
}


@pytest.mark.parametrize(("flow", "told"), STATES.values(), ids=list(STATES))
def test_what_is_not_as_expected_is_told_with_where_the_run_is(flow: dict[str, Any], told: str) -> None:
    run = FlowTest(flow).start()
    with pytest.raises(NotAsExpected, match=f"does not wait for 'paid': {told}"):
        run.waits_for("paid")


def test_an_output_is_asked_only_of_a_completed_run_and_an_error_of_a_failed_one() -> None:
    run = FlowTest(LEAVE).start()
    with pytest.raises(NotAsExpected, match="there is no output: the run waits"):
        _ = run.output
    with pytest.raises(NotAsExpected, match="it did not fail: the run waits"):
        _ = run.error
