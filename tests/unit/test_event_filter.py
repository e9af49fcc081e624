"""The event filter over a store in a file."""

from __future__ import annotations

from pathlib import Path

from plaita.backends.sqlite import SqliteBackend
from plaita.event import Event, InMemoryEventBus
from plaita.server.event_filter import EventFilter
from plaita.server.flow_worker import FlowWorker
from plaita.storage import OpenedStore, StoreExecutionStorage, StoreFlowStorage

TWICE = {
    "flow_id": "twice",
    "nodes": [
        {"id": "s", "type": "start", "next": "a"},
        {"id": "a", "type": "event", "event_type": "go", "next": "b"},
        {"id": "b", "type": "event", "event_type": "go", "next": "e"},
        {"id": "e", "type": "end", "output": ["$NODE.a.event_data", "$NODE.b.event_data"]},
    ],
}


async def test_an_event_that_is_heard_again_does_not_answer_the_next_wait(tmp_path: Path) -> None:
    with OpenedStore(lambda: SqliteBackend(tmp_path / "store.db")) as store:
        executions, flows, bus = StoreExecutionStorage(store), StoreFlowStorage(store), InMemoryEventBus()
        flows.save_flow(TWICE)
        worker = FlowWorker(executions, flows)
        worker.start_flow("twice", {}, execution_id="w")
        filtering = EventFilter(executions, bus.subscription_storage, None, bus)
        first = Event(event_type="go", data={"n": 1}, correlation_id="w")
        await filtering.handle_event(first)
        assert worker.resume_flow("twice", "w", "continue")["id"] == "b"
        await filtering.handle_event(first)
        assert worker.resume_flow("twice", "w", "continue")["already_suspended"]
        await filtering.handle_event(Event(event_type="go", data={"n": 2}, correlation_id="w"))
        assert worker.resume_flow("twice", "w", "continue")["result"] == [{"n": 1}, {"n": 2}]
