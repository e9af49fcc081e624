"""A saved context comes from outside and may say anything: it is refused by name, or it goes on."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from plaita import Flow, FlowExecution
from plaita.base.errors import InputError, PlaitaError
from tests.support.flows import chain

FLOW = Flow.model_validate(chain({"id": "n", "type": "assignment", "output": "$INPUT.a + 1"}))
SAVED: dict[str, Any] = FlowExecution().run_distributed(FLOW, {"a": 1})["context"]
FIELDS = range(len(SAVED["$FRAMES"]["f"]))
HEADS = range(len(SAVED["$FRAMES"]["h"]))
ODD: tuple[Any, ...] = (None, 5, -1, "x", [], {}, True, 10**30, ["x"], {"x": {}})


def goes_on_or_is_refused(context: Any) -> None:
    try:
        FlowExecution().run_distributed(FLOW, saved_context=context)
    except PlaitaError:
        return


@pytest.mark.parametrize("odd", [5, "x", [1], 1.5], ids=repr)
def test_a_context_that_is_no_object_is_refused(odd: Any) -> None:
    with pytest.raises(InputError, match="context"):
        FlowExecution().run_distributed(FLOW, saved_context=odd)


@pytest.mark.parametrize("odd", [5, "x", [1], {"f": 5}, {"f": []}, {"f": SAVED["$FRAMES"]["f"]}], ids=repr)
def test_frames_that_are_no_state_are_refused_by_name(odd: Any) -> None:
    with pytest.raises(InputError, match="FRAMES"):
        FlowExecution().run_distributed(FLOW, saved_context={**SAVED, "$FRAMES": odd})


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize(("key", "index"), [*(("f", i) for i in FIELDS), *(("h", i) for i in HEADS)])
def test_every_field_of_a_state_may_be_damaged(key: str, index: int, odd: Any) -> None:
    context = copy.deepcopy(SAVED)
    context["$FRAMES"][key][index] = odd
    goes_on_or_is_refused(context)


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("index", range(4))
def test_every_time_of_a_frame_may_be_damaged(index: int, odd: Any) -> None:
    context = copy.deepcopy(SAVED)
    context["$FRAMES"]["f"][8][index] = odd
    goes_on_or_is_refused(context)


def test_a_state_that_stands_at_no_node_is_refused_instead_of_waited_for() -> None:
    context = copy.deepcopy(SAVED)
    context["$FRAMES"]["f"][3] = None
    with pytest.raises(InputError, match="stands at no node"):
        FlowExecution().run_distributed(FLOW, saved_context=context)
