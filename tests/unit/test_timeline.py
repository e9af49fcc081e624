"""What an attempt tells: each fact once, also when a settle was refused."""

from __future__ import annotations

from typing import Any

import pytest

from plaita import Flow, Runtime
from plaita.base.json import decode
from plaita.engine.effects import Returned
from plaita.server.worker.timeline import Timeline
from plaita.telemetry.sink import LogTelemetry


def events_of(timeline: Timeline) -> list[str]:
    return [decode(entry)["event"] for entry in timeline.take()]


def test_a_call_that_came_back_is_told_again_after_a_refused_settle_and_the_rest_is_not() -> None:
    timeline = Timeline("r1", LogTelemetry(), None)
    timeline.came_back(Returned("c1", 1))
    timeline.add("wait")
    assert events_of(timeline) == ["node_end", "wait"]
    timeline.refused()
    timeline.came_back(Returned("c2", 2))
    assert events_of(timeline) == ["node_end", "node_end"]
    timeline.refused()
    assert events_of(timeline) == ["node_end", "node_end"]


def test_an_accepted_settle_is_told_once() -> None:
    timeline = Timeline("r1", LogTelemetry(), None)
    timeline.came_back(Returned("c1", 1))
    assert events_of(timeline) == ["node_end"]
    assert events_of(timeline) == []


@pytest.fixture(params=["memory", "sqlite", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Any) -> str:
    """A store of each sort."""
    if request.param == "redis":
        found: str = request.getfixturevalue("redis_url")
        return found
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 's.db'}"


def waiting(**fields: Any) -> Flow:
    node = {"id": "w", "type": "delay", "delay_seconds": 0.1, "next": "e"} | fields
    return Flow(flow_id="f", nodes=[{"id": "s", "type": "start", "next": "w"}, node, {"id": "e", "type": "end"}])


async def test_a_delay_is_told_in_two_entries_that_it_waits_and_that_its_time_came(url: str) -> None:
    async with await Runtime.aopen(url) as runtime:
        run = await runtime.astart(waiting())
        shape = await run.await_(15)
        told = [entry for entry in await run.ahistory() if entry["event"] != "claimed"]
    assert shape["status"] == "completed"
    assert [entry["event"] for entry in told] == ["submitted", "nodes", "wait", "wait_closed", "nodes", "run_ended"]
    waits, closed = ({k: v for k, v in entry.items() if k not in ("seq", "at")} for entry in told[2:4])
    due_ms = waits.pop("deadline_ms")
    assert due_ms > 0
    assert waits == {"event": "wait", "node": "w", "wait_id": "@w#1", "kind": "delay"}
    assert closed == {"event": "wait_closed", "wait": "@w#1", "node": "w", "by": {"kind": "timeout"}}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"type": "approval", "approval_title": "Pay?"}, "approval"),
        ({"type": "event", "event_type": "paid"}, "event"),
        ({"delay_seconds": 600, "event_type": "mine"}, "delay"),
    ],
)
async def test_a_wait_is_told_by_the_word_that_people_have_for_it(fields: dict[str, Any], kind: str) -> None:
    async with await Runtime.aopen("memory:") as runtime:
        run = await runtime.astart(waiting(**fields))
        shape = await run.await_(1)
        [told] = [entry for entry in await run.ahistory() if entry["event"] == "wait"]
    assert told["kind"] == shape["waits"][0]["kind"] == kind


async def test_a_wait_that_a_cancel_closes_is_told_once(url: str) -> None:
    async with await Runtime.aopen(url) as runtime:
        run = await runtime.astart(waiting(type="event", event_type="paid"))
        await run.await_(15)
        await run.acancel()
        told = [entry for entry in await run.ahistory() if entry["event"] == "wait_closed"]
    assert [entry["by"]["kind"] for entry in told] == ["cancel"]
