"""Timeouts of nodes, sub-flows and runs in virtual time, and what is done about them."""

from __future__ import annotations

from typing import Any

import pytest

from plaita.engine.effects import Cancel, Elapsed, Returned, Wake
from plaita.engine.machine import next_due
from tests.support.flows import chain, event, flow_of, outside
from tests.support.machine_world import World

SECOND = 1000


def world(document: dict[str, Any], **options: Any) -> World:
    return World(flow_of(document), {}, **options)


def test_a_call_that_exceeds_its_timeout_is_dropped_and_fails_the_flow() -> None:
    at = world(chain(outside(timeout=500)))
    assert next_due(at.run) == at.now_ms + 500
    at.now_ms += 500
    at.step([])
    assert (at.failure.kind, at.failure.code, at.failure.path) == ("timeout", -1, ("call",))


def test_a_timeout_handler_that_goes_on_puts_its_default_in_the_place_of_the_result() -> None:
    handler = {"strategy": "continue-with", "defaultValue": ["late", "$INPUT.x"]}
    at = world(chain(outside(timeout=500, timeoutHandler=handler)))
    open_id = next(iter(at.open_calls))
    at.elapse(500)
    assert at.output == ["late", None]
    at.step([Returned(open_id, "too late")])
    assert at.output == ["late", None]


def test_a_timeout_handler_names_the_error_and_the_timeout_stays_its_cause() -> None:
    at = world(chain(outside(timeout=500, timeoutHandler={"strategy": "abort", "code": 9, "message": "slow"})))
    at.elapse(500)
    assert (at.failure.code, at.failure.message, at.failure.kind) == (9, "slow", "timeout")
    assert at.failure.cause is not None and at.failure.cause.code == -1


def test_the_error_handler_of_a_node_does_not_catch_its_timeout() -> None:
    at = world(chain(outside(timeout=500, errorHandler={"strategy": "continue", "retryTimes": 3})))
    at.elapse(500)
    assert at.failure.kind == "timeout"


def test_a_timeout_of_a_host_cuts_everything_below_it() -> None:
    inner = chain({"id": "c", "type": "child", "childFlow": chain(event())})
    host = {"id": "l", "type": "loop", "collection": [1, 2], "childFlow": inner, "timeout": "PT2S"}
    at = world(chain({**host, "timeoutHandler": {"strategy": "continue"}}, output="on"))
    assert at.waits() == ["l:0/c/wait"]
    at.elapse(2 * SECOND)
    assert at.output == "on"
    assert list(at.store) == ["h"] and not at.labels


def test_a_timeout_inside_a_child_is_an_error_for_the_host_and_not_its_timeout() -> None:
    child = {"id": "c", "type": "child", "childFlow": chain(outside(timeout=500))}
    handlers = {
        "timeoutHandler": {"strategy": "continue"},
        "errorHandler": {"strategy": "continue-with", "defaultValue": "e"},
    }
    at = world(chain({**child, **handlers}))
    at.elapse(500)
    assert at.output == "e"
    at = world(chain({**child, "timeoutHandler": {"strategy": "continue"}}))
    at.elapse(500)
    assert (at.failure.kind, at.failure.path) == ("timeout", ("c", "call"))


def test_the_timeout_of_a_sub_flow_is_an_error_of_its_host() -> None:
    child = {"id": "c", "type": "child", "childFlow": chain(event(), timeout="PT1S")}
    at = world(chain({**child, "errorHandler": {"strategy": "continue-with", "defaultValue": "gave up"}}))
    at.elapse(SECOND)
    assert at.output == "gave up"
    at = world(chain(child))
    at.elapse(SECOND)
    assert (at.failure.kind, at.failure.path) == ("timeout", ("c",))


def test_every_round_of_a_loop_has_the_timeout_of_the_body_anew() -> None:
    loop = {"id": "l", "type": "loop", "collection": [1, 2], "childFlow": chain(event(), timeout="PT1S", output=1)}
    at = world(chain(loop))
    at.now_ms += 900
    at.wake("l:0/wait", None)
    at.elapse(900)
    at.wake("l:1/wait", None)
    assert at.output == 1


def test_the_timeout_of_a_flow_counts_waits_and_is_caught_by_nobody() -> None:
    at = world(
        chain(event(timeoutHandler={"strategy": "continue"}, errorHandler={"strategy": "continue"}), timeout="PT1H")
    )
    at.elapse(3600 * SECOND - 1)
    assert at.ended is None
    at.crash()
    at.elapse(1)
    assert (at.failure.kind, at.failure.final) == ("timeout", True)
    assert "3600000 ms" in at.failure.message


def test_without_a_timeout_only_active_time_counts_and_it_survives_a_crash() -> None:
    at = world(chain(event("one"), outside("a"), event("two"), outside("b")))
    at.now_ms += 10_000 * SECOND
    at.step([])
    wait_id = next(iter(at.labels))
    from plaita.engine.effects import Wake

    at.step([Wake(wait_id, None)])
    assert list(at.open_calls) == ["@a#1"]
    at.now_ms += 1000 * SECOND
    at.step([])
    at.crash()
    assert at.run.active_ms == 1_000_000
    at.now_ms += 800 * SECOND + 1
    assert next_due(at.run) == at.now_ms
    at.step([])
    assert at.failure.kind == "timeout" and "active time" in at.failure.message


def test_a_wait_that_is_over_gives_the_documented_state_or_goes_to_its_timeout_handler() -> None:
    at = world(chain(event(subscriptionTimeout=2)))
    at.elapse(2 * SECOND)
    assert at.output["status"] == "timeout"
    handler = {"strategy": "continue-with", "defaultValue": "nobody came"}
    at = world(chain(event(subscriptionTimeout=2, timeoutHandler=handler)))
    at.elapse(2 * SECOND)
    assert at.output == "nobody came"


def test_a_late_timer_of_an_earlier_node_changes_nothing() -> None:
    at = world(chain(outside("a", timeout=500), event("w", timeout=5000)))
    at.settle_calls()
    at.elapse(500)
    assert at.ended is None and at.waits() == ["w"]


@pytest.mark.parametrize("timeout", ["$INPUT.limit", "$( 300 + 200 )"])
def test_a_timeout_may_be_an_expression(timeout: str) -> None:
    at = World(flow_of(chain(outside(timeout=timeout))), {"limit": "PT0.5S"})
    assert next_due(at.run) == at.now_ms + 500


def test_a_timeout_that_makes_no_sense_is_a_failure_of_the_node() -> None:
    handler = {"strategy": "continue-with", "defaultValue": "no limit"}
    at = World(flow_of(chain(event(timeout="$INPUT.limit", errorHandler=handler))), {"limit": "soon"})
    assert at.output == "no limit"


def test_a_cancelled_run_ends_wherever_it_is() -> None:
    at = world(chain(event(errorHandler={"strategy": "continue"})))
    at.step([Cancel()])
    assert (at.failure.kind, at.failure.code) == ("cancelled", -4)


def test_of_two_deadlines_at_one_time_the_outer_one_wins() -> None:
    child = {
        "id": "c",
        "type": "child",
        "timeout": 500,
        "timeoutHandler": {"strategy": "continue-with", "defaultValue": "x"},
    }
    inner = chain(outside(timeout=500, timeoutHandler={"strategy": "continue"}), output="inner")
    handler = {"strategy": "continue-with", "defaultValue": "outer"}
    for restless in (False, True):
        at = world(chain({**child, "childFlow": inner, "timeoutHandler": handler}), restless=restless)
        at.elapse(500)
        assert at.output == "outer"


@pytest.mark.parametrize("fields", [{}, {"subscriptionTimeout": 3600}])
def test_a_wait_that_is_told_to_be_over_gives_the_documented_state(fields: dict[str, Any]) -> None:
    at = world(chain(event(**fields)))
    at.step([Elapsed("@wait#1")])
    assert at.output["status"] == "timeout"


def test_a_wait_that_is_told_to_be_over_goes_to_its_timeout_handler() -> None:
    at = world(chain(event(timeoutHandler={"strategy": "continue-with", "defaultValue": "late"})))
    at.step([Elapsed("@wait#1")])
    assert at.output == "late"


def test_an_answer_before_the_word_that_a_wait_is_over_counts() -> None:
    at = world(chain(event()))
    at.step([Wake("@wait#1", 1), Elapsed("@wait#1")])
    assert (at.output["status"], at.output["event_data"]) == ("completed", 1)
