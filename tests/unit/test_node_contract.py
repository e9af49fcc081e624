"""What a custom node may write besides its fields and ``execute``."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from plaita.base.errors import FlowLoadError, NodeExecutionError
from plaita.core.executor import FlowExecution
from plaita.core.flow import Flow
from plaita.node.basic import Node
from plaita.node.event_node import EventNode
from tests.support.flows import chain, flow_of

RETRIED = {"retry": {"attempts": 2, "base": 1}}


class Picky(Node):
    """Accepts even results; counts what it gave."""

    node_type: ClassVar[str] = "picky"
    given: ClassVar[list[int]] = []
    LEGACY_KEYS: ClassVar[frozenset[str]] = frozenset({"colour"})

    first: Any = 1

    def validate(self) -> None:  # type: ignore[override]
        if self.first == 13:
            raise ValueError("13 brings bad luck")

    def _validate_output(self, result: Any) -> None:
        if result % 2:
            raise ValueError(f"{result} is odd")

    def execute(self, execution: Any) -> int:
        self.given.append(self.first + len(self.given))
        return self.given[-1]


class Async(Picky):
    node_type: ClassVar[str] = "picky_async"

    async def arun(self, execution: Any) -> int:
        return self.execute(execution)


class Wrapped(Node):
    node_type: ClassVar[str] = "wrapped"

    def execute(self, execution: Any) -> str:
        return "body"

    def node_result_payload(self) -> dict[str, Any]:
        return {"status": 200}


class OrderPaid(EventNode):
    """Waits for one kind of event; says only what it waits for."""

    node_type: ClassVar[str] = "order_paid"

    event_type: Any = "order.paid"
    event_filter: Any = {"order.id": "$INPUT.order"}


class Conducts(EventNode):
    node_type: ClassVar[str] = "conducts"

    def resume(self, execution: Any, resume_type: Any, resume_data: Any = None) -> Any:
        return resume_data


class Suspends(Node):
    node_type: ClassVar[str] = "suspends"
    is_suspending: ClassVar[bool] = True

    def execute(self, execution: Any) -> dict[str, Any]:
        return {"status": "pending"}


@pytest.fixture(autouse=True)
def nothing_given() -> None:
    Picky.given.clear()


@pytest.mark.parametrize("cls", [Picky, Async])
def test_a_result_that_the_node_refuses_is_tried_again(cls: type[Node]) -> None:
    node = {"id": "n", "type": cls.node_type, "errorHandler": RETRIED}
    assert flow_of(chain(node), cls).run() == 2


def test_a_refused_result_fails_the_node_with_what_its_check_raised() -> None:
    with pytest.raises(NodeExecutionError, match="the result is refused: 1 is odd") as caught:
        flow_of(chain({"id": "n", "type": "picky"}), Picky).run()
    assert isinstance(caught.value.__cause__, ValueError)


def test_what_validate_raises_is_a_warning() -> None:
    flow = flow_of(chain({"id": "n", "type": "picky", "first": 13}), Picky)
    [issue] = flow.issues
    assert (issue.severity, issue.code, issue.node_id) == ("warning", "node_invalid", "n")
    assert "13 brings bad luck" in issue.message


def test_legacy_keys_are_no_mistakes() -> None:
    assert flow_of(chain({"id": "n", "type": "picky", "colour": "red"}), Picky).issues == ()


def test_a_payload_is_stored_around_the_result() -> None:
    flow = flow_of(chain({"id": "n", "type": "wrapped"}, output="$NODE.n"), Wrapped)
    assert flow.run() == {"status": 200, "data": "body"}


def test_an_event_node_with_fields_of_its_own_waits_for_them() -> None:
    flow = flow_of(chain({"id": "w", "type": "order_paid"}), OrderPaid)
    waiting = steps(flow, {"order": 9})[-1]["result"]
    assert (waiting["event_type"], waiting["event_filter"]) == ("order.paid", {"order.id": 9})


def steps(flow: Flow, value: dict[str, Any]) -> list[dict[str, Any]]:
    """Distributed steps up to the first wait."""
    taken = [FlowExecution().run_distributed(flow, value)]
    while not taken[-1]["is_suspend"]:
        taken.append(FlowExecution().run_distributed(flow, saved_context=taken[-1]["context"]))
    return taken


@pytest.mark.parametrize("cls", [Conducts, Suspends])
def test_a_node_that_conducts_its_own_wait_is_refused_with_a_way_out(cls: type[Node]) -> None:
    node = {"id": "w", "type": cls.node_type, "eventType": "x"} if cls is Conducts else {"id": "w", "type": "suspends"}
    with pytest.raises(FlowLoadError) as caught:
        flow_of(chain(node), cls)
    [issue] = caught.value.issues
    assert issue.code == "custom_wait"
    assert "subclass EventNode" in issue.hint
