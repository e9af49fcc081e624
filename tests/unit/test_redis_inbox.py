"""Which messages of a portion are carried out together."""

from __future__ import annotations

from typing import Any, cast

import pytest

from plaita.backends.redis.entries import Entry
from plaita.backends.redis.inbox import independent
from plaita.backends.verbs.messages import Aim, Order, Start, Stop, Wanted
from plaita.ports.inbox import DeadLettered
from plaita.ports.values import RunId


def start(run_id: str, name: str = "") -> Start:
    return Start(RunId(run_id), "default", "flow", "", b"{}", "default", name)


STOP = Stop(Aim(RunId("a"), "default"))
REFUSED = DeadLettered("no_run", "nobody")


@pytest.mark.parametrize(
    ("orders", "groups"),
    [
        ([], []),
        ([start("a"), start("b"), start("c")], [[0, 1, 2]]),
        ([start("a"), start("b"), start("a"), start("c")], [[0, 1], [2, 3]]),
        ([start("a", "key"), start("b", "key"), start("c")], [[0], [1, 2]]),
        ([start("a", "b"), start("b")], [[0], [1]]),
        ([start("a"), STOP, start("b"), start("c")], [[0], [1], [2, 3]]),
        ([STOP, STOP], [[0], [1]]),
        ([start("a"), REFUSED, start("b")], [[0], [1], [2]]),
    ],
)
def test_only_starts_of_different_executions_are_carried_out_together(
    orders: list[Order | DeadLettered], groups: list[list[int]]
) -> None:
    read = [
        (cast(Entry, number), order if isinstance(order, DeadLettered) else Wanted(order, 0))
        for number, order in enumerate(orders)
    ]
    found: Any = independent(read)
    assert [[number for number, _ in group] for group in found] == groups
