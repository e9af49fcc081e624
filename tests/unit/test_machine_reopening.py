"""A run that ended in an error is reopened: what failed is tried again, what is finished stays finished."""

from __future__ import annotations

from typing import Any

from plaita.engine.delta import restore
from plaita.engine.effects import Raised, Returned
from plaita.engine.failure import Failure
from plaita.engine.machine import next_due, open_calls
from tests.support.flows import chain, event, flow_of, outside, parallel
from tests.support.machine_world import World


def broken(call_id: str) -> Raised:
    return Raised(call_id, Failure("node_error", -520, "down", retryable=True))


def reopen(at: World) -> World:
    """What a worker does when an operator retries: the end closed all waits, the rest comes from the store."""
    assert at.ended is not None
    at.ended = None
    at.labels.clear()
    at.run = restore(at.flow.program, at.conditions(), at.value, at.store, now_ms=at.now_ms, reopened=True)
    at.open_calls = {call.id: call for call in open_calls(at.run)}
    at.step([])
    return at


def world(document: dict[str, Any], value: Any = None) -> World:
    return World(flow_of(document), value or {})


def test_a_failed_call_is_issued_again_under_its_id_and_its_first_time() -> None:
    at = world(chain(outside("a"), outside("b", timeout=500)))
    at.step([Returned("@a#1", 1)])
    issued = at.open_calls["@b#1"].issued_ms
    at.step([broken("@b#1")])
    at.now_ms += 99_000
    reopen(at)
    call = at.open_calls["@b#1"]
    assert (call.attempt, call.issued_ms, call.deadline_ms) == (1, issued, at.now_ms + 500)
    at.step([Returned("@b#1", 2)])
    assert at.output == 2


def test_a_failed_pure_node_is_computed_again() -> None:
    at = world(chain({"id": "a", "type": "assignment", "output": "$( 1 / $F.len($ENV.N or '') )"}, exposeEnv=["N"]))
    assert at.failure.path == ("a",)
    at.env["N"] = "xy"
    assert reopen(at).output == 0.5


def test_a_wait_that_timed_out_inside_a_child_is_armed_anew_under_the_next_number() -> None:
    child = {"id": "c", "type": "child", "childFlow": chain(outside(), event(timeout=500))}
    at = world(chain(child))
    at.step([Returned("/c@call#1", 1)])
    at.elapse(500)
    assert at.failure.path == ("c", "wait")
    at.now_ms += 99_000
    reopen(at)
    assert list(at.labels) == ["/c@wait#2"]
    assert next_due(at.run) == at.now_ms + 500
    at.wake("c/wait", "news")
    assert at.output["event_data"] == "news"
    assert at.effect_ids.count("/c@call#1!1") == 1


def test_branches_that_wait_or_work_when_a_sibling_fails_go_on() -> None:
    fan = parallel(
        {"a": chain(outside()), "b": chain(event()), "c": chain(outside()), "d": chain(outside("x"), output="d")}
    )
    at = world(chain(fan))
    at.step([Returned("/p:d@x#1", 1)])
    at.step([broken("/p:a@call#1")])
    assert at.failure.path == ("p", "a", "call")
    reopen(at)
    assert set(at.open_calls) == {"/p:a@call#1", "/p:c@call#1"}
    assert list(at.labels) == ["/p:b@wait#2"]
    at.step([Returned("/p:a@call#1", "a")])
    at.step([Returned("/p:c@call#1", "c")])
    at.wake("p:b/wait", None)
    assert (at.output["a"], at.output["c"], at.output["d"]) == ("a", "c", "d")


def test_a_run_that_exceeded_its_timeout_gets_the_same_time_again() -> None:
    at = world(chain(event(), timeout="PT1H"))
    at.elapse(3_600_000)
    assert at.failure.kind == "timeout"
    at.now_ms += 86_400_000
    reopen(at)
    assert next_due(at.run) == at.now_ms + 3_600_000
    at.wake("wait", None)
    assert at.output["status"] == "completed"


def test_a_run_that_used_up_its_active_time_begins_to_count_again() -> None:
    at = world(chain(outside()))
    at.elapse(1_800_001)
    assert at.failure.kind == "timeout"
    reopen(at)
    assert at.run.active_ms == 0
    at.step([Returned("@call#1", 1)])
    assert at.output == 1


def test_a_host_that_exceeded_its_timeout_goes_on_where_it_was() -> None:
    loop = {"id": "l", "type": "loop", "collection": [1, 2], "childFlow": chain(outside()), "timeout": 2000}
    at = world(chain(loop))
    at.step([Returned("/l:0@call#1", "a")])
    at.elapse(2000)
    assert at.failure.path == ("l",)
    reopen(at)
    assert list(at.open_calls) == ["/l:1@call#1"]
    assert next_due(at.run) == at.now_ms + 2000
    at.step([Returned("/l:1@call#1", "b")])
    assert at.output == "b"


def test_a_sub_flow_that_exceeded_its_timeout_gets_it_again() -> None:
    at = world(chain({"id": "c", "type": "child", "childFlow": chain(outside(), timeout=700)}))
    at.elapse(700)
    assert at.failure.path == ("c",)
    reopen(at)
    assert next_due(at.run) == at.now_ms + 700
    at.step([Returned("/c@call#1", 1)])
    assert at.output == 1


def test_a_host_that_failed_itself_begins_anew_under_new_ids() -> None:
    condition = {"field": "$LOOP-RESULT", "operator": "gt", "value": 0}
    loop = {"id": "l", "type": "loop", "collection": [1, 2], "childFlow": chain(outside()), "condition": condition}
    at = world(chain(loop))
    at.step([Returned("/l:0@call#1", "text")])
    assert at.failure.path == ("l",)
    reopen(at)
    assert list(at.open_calls) == ["/l~2:0@call#1"]
    at.step([Returned("/l~2:0@call#1", 5)])
    at.step([Returned("/l~2:1@call#1", 6)])
    assert at.output == 6
    assert list(at.store) == ["h"]


def test_a_second_failure_can_be_reopened_too() -> None:
    at = world(chain(outside()))
    for _ in range(3):
        at.step([broken("@call#1")])
        reopen(at)
    at.step([Returned("@call#1", 1)])
    assert at.output == 1
