"""Hosts: collecting, failing fast, detaching, bounded fans and long collections."""

from __future__ import annotations

from typing import Any

import pytest

from plaita.engine.delta import restore, take_delta
from plaita.engine.effects import Done, Raised, Returned
from plaita.engine.failure import Failure
from plaita.engine.machine import Conditions, advance, start
from tests.support.flows import chain, event, failing, flow_of, outside, parallel
from tests.support.machine_world import World


def broken(call_id: str, text: str = "down") -> Raised:
    return Raised(call_id, Failure("node_error", -520, text))


def world(document: dict[str, Any], value: Any = None, **options: Any) -> World:
    return World(flow_of(document), value or {}, **options)


def test_a_collected_failure_stands_in_the_place_of_the_branch() -> None:
    fan = parallel({"a": failing("E7"), "b": chain({"id": "x", "type": "mock", "value": 1})}, onBranchError="collect")
    found = world(chain(fan)).output
    assert found["b"] == 1
    assert found["a"] == {
        "error": {"kind": "error_result", "code": "E7", "message": "no", "error_type": "error_result", "path": ["end"]}
    }
    assert list(found) == ["a", "b"]


def test_a_collecting_map_keeps_the_order_of_its_items() -> None:
    body = chain({"id": "x", "type": "assignment", "output": "$( 6 / $INPUT.item )"})
    node = {"id": "m", "type": "map", "collection": [1, 0, 3], "childFlow": body, "onBranchError": "collect"}
    found = world(chain(node)).output
    assert [found[0], found[2]] == [6, 2]
    assert found[1]["error"]["path"] == ["x"]


def test_of_failures_that_arrive_together_the_first_in_declaration_order_wins() -> None:
    fan = parallel({"a": chain(outside()), "b": chain(outside()), "c": chain(outside())})
    at = world(chain(fan))
    at.step([broken("/p:c@call#1", "c"), broken("/p:a@call#1", "a"), broken("/p:b@call#1", "b")])
    assert (at.failure.message, at.failure.path) == ("a", ("p", "a", "call"))


def test_a_failing_branch_cancels_its_siblings_when_somebody_catches_it() -> None:
    fan = parallel({"a": chain(outside()), "b": chain(outside()), "c": chain(event())})
    at = world(chain({**fan, "errorHandler": {"strategy": "continue-with", "defaultValue": "caught"}}))
    assert set(at.open_calls) == {"/p:a@call#1", "/p:b@call#1"}
    effects = at.step([broken("/p:b@call#1")])
    assert at.output == "caught"
    assert effects.drops == ["/p:a@call#1"]
    assert [c.why for c in effects.closed] == ["cut"]


def test_at_most_so_many_branches_are_open_at_once() -> None:
    node = {"id": "m", "type": "map", "concurrent": True, "collection": [0, 1, 2, 3], "childFlow": chain(outside())}
    at = world(chain({**node, "maxConcurrent": 2}), restless=True)
    assert set(at.open_calls) == {"/m:0@call#1", "/m:1@call#1"}
    at.step([Returned("/m:1@call#1", "b")])
    assert set(at.open_calls) == {"/m:0@call#1", "/m:2@call#1"}
    for key, value in ((0, "a"), (2, "c"), (3, "d")):
        at.step([Returned(f"/m:{key}@call#1", value)])
    assert at.output == ["a", "b", "c", "d"]


def test_a_failing_branch_that_is_collected_makes_room_for_the_next() -> None:
    fan = parallel(
        {"a": chain(outside()), "b": failing(), "c": chain(event())}, maxConcurrent=1, onBranchError="collect"
    )
    for restless in (False, True):
        at = world(chain(fan), restless=restless)
        at.step([broken("/p:a@call#1")])
        assert at.waits() == ["p:c/wait"]


@pytest.mark.parametrize("entry", ["$INPUT.v", "$NODE.a", "$GLOBAL.g"])
def test_a_branch_left_out_sees_the_scope_as_it_was_when_its_node_began(entry: str) -> None:
    inner = chain(
        {"id": "a", "type": "assignment", "output": "$( $INPUT.v * 2 )"},
        parallel({"kept": chain(event()), "left": chain(outside(input=entry))}, joinBranches=["kept"]),
    )
    flow = flow_of(chain({"id": "c", "type": "child", "childFlow": inner}, globalContext={"g": "global"}))
    run = start(flow.program, Conditions("x"), {"v": 3}, now_ms=1)
    (detached,) = advance(run, [], now_ms=1).detached
    assert detached.key == "/c/p:left"
    conditions = Conditions("y", entry=detached.entry)
    alone = start(flow.program, conditions, detached.document, now_ms=2)
    effects = advance(alone, [], now_ms=2)
    alone = restore(flow.program, conditions, detached.document, _stored(alone), now_ms=2)
    (call,) = effects.calls.values()
    from plaita.core.calls import NodeExecution

    given = NodeExecution(call, "i").evaluate(call.node.model.input)
    assert given == {"$INPUT.v": 3, "$NODE.a": 6, "$GLOBAL.g": "global"}[entry]
    assert advance(alone, [Returned(call.id, given)], now_ms=3).ended == Done(given)


def _stored(run: Any) -> dict[str, bytes]:
    return {key: value for key, value in take_delta(run).items() if value is not None}


def test_a_branch_left_out_with_an_input_of_its_own_starts_with_that() -> None:
    fan = parallel({"kept": chain(event()), "left": chain(outside())}, joinBranches=["kept"])
    fan["branches"][1]["input"] = {"n": "$INPUT.v"}
    run = start(flow_of(chain(fan)).program, Conditions("x"), {"v": 3}, now_ms=1)
    (detached,) = advance(run, [], now_ms=1).detached
    assert detached.document["input"] == {"n": 3}


def test_a_detached_branch_has_a_key_for_every_visit_of_its_node() -> None:
    count = {"id": "n", "type": "assignment", "output": "$( ($NODE.n or 0) + 1 )"}
    fan = parallel({"kept": chain(outside()), "left": chain()}, joinBranches=["kept"], next="again")
    again = {"id": "again", "type": "if", "condition": {"field": "$NODE.n", "operator": "lt", "value": 2}}
    at = world(chain(count, fan, {**again, "next": "n", "elseNext": "end"}))
    keys: list[str] = []
    while at.ended is None:
        keys += list(at.open_calls)
        at.step([Returned(next(iter(at.open_calls)), 1)])
    assert keys == ["/p:kept@call#1", "/p~2:kept@call#1"]


def test_a_long_concurrent_map_gives_a_chance_to_commit_between_its_items() -> None:
    body = chain({"id": "x", "type": "assignment", "output": "$INPUT.index"})
    flow = flow_of(chain({"id": "m", "type": "map", "concurrent": True, "collection": "$INPUT.l", "childFlow": body}))
    run = start(flow.program, Conditions("x", fuel=10), {"l": [0] * 55}, now_ms=1)
    advances = 0
    while not (effects := advance(run, [], now_ms=1)).ended:
        assert effects.more
        advances += 1
    assert advances >= 5
    assert effects.ended == Done(list(range(55)))


def test_a_duplicate_answer_of_an_earlier_round_changes_nothing() -> None:
    loop = {"id": "l", "type": "loop", "collection": [1, 2], "childFlow": chain(event())}
    at = world(chain(loop))
    at.wake("l:0/wait", "a")
    at.rewake("b")
    assert at.waits() == ["l:1/wait"]


def test_a_branching_custom_node_that_names_no_node_fails() -> None:
    from typing import ClassVar

    from tests.support.flows import Outside

    class Choice(Outside):
        node_type: ClassVar[str] = "choice"
        branching: ClassVar[bool] = True

    node = {"id": "c", "type": "choice", "next": "end"}
    at = World(flow_of(chain(node, output=1), Choice), {})
    at.step([Returned("@c#1", "nowhere")])
    assert (at.failure.kind, at.failure.path) == ("no_branch_matched", ("c",))
    at = World(flow_of(chain(node, output=1), Choice), {})
    at.step([Returned("@c#1", "end")])
    assert at.output == 1
