"""What is written grows with what happened, never with what there is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plaita.engine.delta import UnreadableState, restore, take_delta
from plaita.engine.effects import Done, Returned
from plaita.engine.machine import Conditions, Run, advance, start
from tests.support.flows import chain, flow_of, outside


def shape(delta: dict[str, bytes | None]) -> dict[str, int]:
    """Keys and sizes, every number taken for one digit."""
    return {re.sub(r"\d+", "0", k): len(re.sub(rb"\d+", b"0", v or b"")) for k, v in delta.items()}


def deltas(run: Run, count: int) -> list[dict[str, bytes | None]]:
    """Answer calls one by one and take the delta of each."""
    found = []
    effects = advance(run, [], now_ms=1)
    take_delta(run)
    for _ in range(count):
        (call_id,) = effects.calls
        effects = advance(run, [Returned(call_id, 7)], now_ms=1)
        found.append(take_delta(run))
    return found


@pytest.mark.parametrize("kind", ["chain", "loop", "map"])
def test_a_step_writes_the_same_amount_early_and_late(kind: str) -> None:
    if kind == "chain":
        document = chain(*(outside(f"n{i}") for i in range(1100)))
    else:
        host = {"id": "l", "type": kind, "collection": "$INPUT.items", "childFlow": chain(outside(), outside("second"))}
        document = chain(host)
    run = start(flow_of(document).program, Conditions("x"), {"items": [0] * 600}, now_ms=1)
    found = [shape(d) for d in deltas(run, 1010)]
    assert found[9].keys() == found[999].keys()
    assert len(found[9]) <= 8
    assert found[9] == found[999]


def test_a_round_leaves_nothing_of_the_round_before() -> None:
    host = {"id": "l", "type": "loop", "collection": "$INPUT.items", "childFlow": chain(outside(), outside("second"))}
    run = start(flow_of(chain(host)).program, Conditions("x"), {"items": [0] * 50}, now_ms=1)
    store: dict[str, bytes] = {}
    advance(run, [], now_ms=1)
    sizes = set()
    for key, value in take_delta(run).items():
        assert value is not None
        store[key] = value
    while run.calls:
        advance(run, [Returned(next(iter(run.calls)), 7)], now_ms=1)
        for key, value in take_delta(run).items():
            if value is None:
                store.pop(key)
            else:
                store[key] = value
        sizes.add(len(store))
    assert store.keys() == {"h"}
    assert max(sizes) <= 10


def test_what_opened_and_closed_within_one_advance_is_never_written() -> None:
    body = chain({"id": "x", "type": "assignment", "output": "$INPUT.item"})
    flow = flow_of(
        chain({"id": "m", "type": "map", "collection": [1, 2, 3], "childFlow": body}, outside(input="$NODE.m"))
    )
    run = start(flow.program, Conditions("x"), {}, now_ms=1)
    advance(run, [], now_ms=1)
    assert sorted(take_delta(run)) == ["f", "h", "n|m", "n|start"]


def stored_call() -> tuple[Any, dict[str, bytes]]:
    flow = flow_of(chain(outside()))
    run = start(flow.program, Conditions("x"), {}, now_ms=1)
    advance(run, [], now_ms=1)
    return flow, {k: v for k, v in take_delta(run).items() if v is not None}


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("h", None, "missing"),
        ("h", b"[99]", "format 99"),
        ("h", b"not json", "not readable"),
        ("f", None, "belongs to no frame"),
        (
            "f",
            b'[null,null,null,"gone","c",null,null,0,[null,null,null,null],"@gone#1",null]',
            "not in this definition",
        ),
        ("n/other|x", b"[0,1]", "belongs to no frame"),
    ],
)
def test_state_that_cannot_be_read_is_refused_by_its_key(key: str, value: bytes | None, reason: str) -> None:
    flow, stored = stored_call()
    stored.pop(key, None)
    if value is not None:
        stored[key] = value
    with pytest.raises(UnreadableState, match=reason):
        restore(flow.program, Conditions("x"), {}, stored, now_ms=1)


def test_a_restored_run_answers_like_the_one_it_was_taken_from() -> None:
    flow, stored = stored_call()
    run = restore(flow.program, Conditions("x"), {}, stored, now_ms=1)
    assert take_delta(run).keys() == {"h"}, "nothing has changed"
    assert advance(run, [Returned("@call#1", 5)], now_ms=1).ended == Done(5)
