"""Retries, backoff and re-drives in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from plaita.engine.effects import Call, Raised, Returned
from plaita.engine.failure import Failure
from plaita.engine.machine import next_due
from tests.support.flows import chain, failing, flow_of, outside, parallel
from tests.support.machine_world import World


def refusing(times: int, *, retryable: bool = True) -> Callable[[Call], Returned | Raised]:
    """Every call fails that often, then gives the number of its attempt."""

    def perform(call: Call) -> Returned | Raised:
        if call.attempt <= times:
            return Raised(call.id, Failure("node_error", -520, f"attempt {call.attempt}", retryable=retryable))
        return Returned(call.id, call.attempt)

    return perform


def world(document: dict[str, Any], perform: Callable[[Call], Returned | Raised], **options: Any) -> World:
    at = World(flow_of(document), {}, perform=perform, **options)
    at.settle_calls()
    return at


def delays(at: World) -> list[int]:
    """Let every backoff pass and tell how long each was."""
    found = []
    while at.ended is None:
        due = next_due(at.run)
        assert due is not None
        found.append(due - at.now_ms)
        at.elapse(due - at.now_ms)
    return found


def test_a_call_is_retried_with_growing_delays_under_one_id() -> None:
    at = world(chain(outside(errorHandler={"retry": {"attempts": 3}})), refusing(3))
    assert delays(at) == [1000, 2000, 4000]
    assert at.output == 4
    assert at.effect_ids == [f"@call#1!{n}" for n in (1, 2, 3, 4)]


def test_backoff_follows_base_factor_and_cap() -> None:
    retry = {"attempts": 4, "base": "PT0.1S", "factor": 10, "cap": 5000}
    at = world(chain(outside(errorHandler={"retry": retry})), refusing(4))
    assert delays(at) == [100, 1000, 5000, 5000]


def test_backoff_survives_a_crash() -> None:
    at = world(chain(outside(errorHandler={"retryTimes": 2})), refusing(2), restless=True)
    assert delays(at) == [1000, 2000]
    assert at.output == 3


def test_after_the_last_attempt_the_strategy_decides_and_the_last_error_is_told() -> None:
    at = world(chain(outside(errorHandler={"retryTimes": 1})), refusing(9))
    delays(at)
    assert at.failure.message == "attempt 2"
    at = world(chain(outside(errorHandler={"retryTimes": 1, "strategy": "continue"}), output="on"), refusing(9))
    delays(at)
    assert at.output == "on"


def test_no_attempt_is_made_when_it_would_begin_after_the_timeout() -> None:
    at = world(chain(outside(timeout=2500, errorHandler={"retryTimes": 5})), refusing(9))
    assert delays(at) == [1000]
    assert at.failure.message == "attempt 2"


@pytest.mark.parametrize("limited", ["host", "sub-flow", "flow"])
def test_no_attempt_is_made_when_a_budget_above_is_spent(limited: str) -> None:
    inner = chain(outside(errorHandler={"retryTimes": 5}), **({"timeout": 2500} if limited == "sub-flow" else {}))
    host = {"id": "c", "type": "child", "childFlow": inner, **({"timeout": 2500} if limited == "host" else {})}
    at = world(chain(host, **({"timeout": 2500} if limited == "flow" else {})), refusing(9))
    assert delays(at) == [1000]
    assert (at.failure.message, at.failure.path) == ("attempt 2", ("c", "call"))


def test_a_permanent_failure_is_not_retried() -> None:
    at = world(chain(outside(errorHandler={"retryTimes": 5})), refusing(9, retryable=False))
    assert at.failure.message == "attempt 1"


@pytest.mark.parametrize("output", ["$( [] - 2 )", "$F.div(1, 0)"])
def test_an_expression_error_is_never_retried(output: str) -> None:
    node = {"id": "a", "type": "assignment", "output": output, "errorHandler": {"retryTimes": 5}}
    at = world(chain(node), refusing(0))
    assert at.failure.kind == "node_error" and at.failure.path == ("a",)


def test_a_business_error_passes_the_handlers_of_its_own_node_only() -> None:
    def perform(call: Call) -> Returned | Raised:
        return Raised(call.id, Failure("error_result", "E1", "no", "error_result"))

    at = world(chain(outside(errorHandler={"retryTimes": 3, "strategy": "continue"})), perform)
    assert (at.failure.kind, at.failure.code) == ("error_result", "E1")
    child = {"id": "c", "type": "child", "childFlow": failing()}
    at = world(chain({**child, "errorHandler": {"strategy": "continue-with", "defaultValue": 1}}), perform)
    assert at.output == 1


def test_a_host_that_is_retried_starts_its_sub_flow_afresh_under_new_ids() -> None:
    attempts: list[str] = []

    def perform(call: Call) -> Returned | Raised:
        attempts.append(call.id)
        if len(attempts) < 3:
            return Raised(call.id, Failure("node_error", -520, "not yet", retryable=True))
        return Returned(call.id, "done")

    child = {"id": "c", "type": "child", "childFlow": chain(outside()), "errorHandler": {"retryTimes": 2}}
    at = world(chain(child), perform, restless=True)
    delays(at)
    assert at.output == "done"
    assert attempts == ["/c@call#1", "/c~2@call#1", "/c~3@call#1"]


def test_a_handler_that_fails_itself_is_an_error_for_the_host() -> None:
    handler = {"strategy": "continue-with", "defaultValue": "$( [] - 2 )"}
    child = {"id": "c", "type": "child", "childFlow": chain(outside(errorHandler=handler))}
    at = world(chain({**child, "errorHandler": {"strategy": "continue-with", "defaultValue": "caught"}}), refusing(9))
    assert at.output == "caught"
    at = world(chain(child), refusing(9))
    assert at.failure.path == ("c", "call") and "[] - 2" in at.failure.message


def test_a_handler_renames_an_error_and_keeps_it_as_the_cause() -> None:
    handler = {"strategy": "abort", "code": 77, "message": "mail is down"}
    child = {
        "id": "c",
        "type": "child",
        "childFlow": chain(outside(errorHandler=handler)),
        "errorHandler": {"code": "TOP"},
    }
    at = world(chain(child), refusing(9))
    assert (at.failure.code, at.failure.message, at.failure.path) == ("TOP", "mail is down", ("c", "call"))
    causes = []
    cause = at.failure.cause
    while cause is not None:
        causes.append(cause.code)
        cause = cause.cause
    assert causes == [77, -520]


def test_an_error_that_would_end_a_durable_run_is_driven_again_five_times_in_all() -> None:
    at = world(chain(outside()), refusing(9), redrive=True)
    assert delays(at) == [1100, 2200, 4400, 8800]
    assert at.failure.message == "attempt 5"
    assert at.run.redrives == 4


def test_a_declared_retry_or_a_handler_that_catches_leaves_no_room_for_a_redrive() -> None:
    at = world(chain(outside(errorHandler={"retryTimes": 1})), refusing(9), redrive=True)
    assert delays(at) == [1000]
    at = world(chain(outside(errorHandler={"strategy": "continue"}), output=1), refusing(9), redrive=True)
    assert at.output == 1
    fan = parallel({"a": chain(outside())}, onBranchError="collect")
    at = world(chain(fan), refusing(9), redrive=True)
    assert at.output["a"]["error"]["message"] == "attempt 1"


def test_a_permanent_error_is_not_driven_again() -> None:
    at = world(chain(outside()), refusing(9, retryable=False), redrive=True)
    assert at.failure.message == "attempt 1"
