"""What an attempt tells survives a settle that was refused."""

from __future__ import annotations

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
