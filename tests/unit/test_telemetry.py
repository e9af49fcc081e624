"""An event is a log line and a number; what it may carry is declared."""

import logging
import re
from pathlib import Path

import pytest

import plaita
from plaita.telemetry import EVENTS, LogTelemetry, events
from plaita.telemetry.event import declare
from plaita.telemetry.sink import SELDOM_MS
from plaita.testing.conformance.stage import HandClock


def test_an_event_is_one_line_with_its_fields_in_declared_order(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = LogTelemetry(logging.getLogger("plaita.test"))
    with caplog.at_level(logging.DEBUG, "plaita.test"):
        telemetry.emit(events.ATTEMPT_CRASHED, error="a b", flow_id=None, run_id="r1")
        telemetry.emit(events.SETTLE_REPEATED, seq=3, run_id="")
    crashed, repeated = caplog.records
    assert (crashed.levelno, repeated.levelno) == (logging.ERROR, logging.INFO)
    assert crashed.getMessage() == "attempt_crashed run_id=r1 flow_id=null error='a b'"
    assert repeated.getMessage() == "settle_repeated run_id='' seq=3"


def test_counters_count_events_and_sums_add_a_field() -> None:
    telemetry = LogTelemetry()
    for count in (2, 3):
        telemetry.emit(events.RUNS_PRUNED, count=count)
    telemetry.emit(events.LEASE_LOST, run_id="r1")
    numbers = telemetry.numbers()
    assert (numbers["plaita_runs_pruned"], numbers["plaita_leases_lost"], numbers["plaita_drains_cut"]) == (5, 1, 0)


def test_where_nobody_reads_numbers_nothing_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = LogTelemetry(counts=False)
    telemetry.emit(events.LEASE_LOST, run_id="r1")
    assert not any(telemetry.numbers().values())
    assert [record.getMessage() for record in caplog.records] == ["lease_lost run_id=r1"]


def test_a_line_break_in_a_field_stays_in_its_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "plaita"):
        LogTelemetry().emit(events.RENEWAL_FAILED, holder="h", error="one\ntwo " + "x" * 1_000)
    message = caplog.records[0].getMessage()
    assert "\n" not in message
    assert len(message) < 500


def test_what_is_written_seldom_is_counted_each_time(caplog: pytest.LogCaptureFixture) -> None:
    clock = HandClock()
    telemetry = LogTelemetry(clock=clock)

    def report(verb: str) -> int:
        with caplog.at_level(logging.DEBUG, "plaita"):
            telemetry.emit(events.STORE_UNAVAILABLE, store="s", verb=verb, error="away")
        return len(caplog.records)

    assert [report("settle"), report("settle"), report("claim"), report("claim")] == [1, 1, 2, 2]
    clock.advance(SELDOM_MS)
    assert report("settle") == 3
    assert telemetry.numbers()["plaita_store_unavailable"] == 5


def test_an_undeclared_field_is_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = LogTelemetry()
    with caplog.at_level(logging.DEBUG, "plaita"):
        telemetry.emit(events.DRAIN_CUT, run_id="r1", password="hunter2")
    assert "hunter2" not in caplog.text
    assert telemetry.numbers()["plaita_event_fields_dropped"] == 1


def test_whatever_is_lost_has_a_counter_of_its_own() -> None:
    metrics = [e.metric.name for e in EVENTS.values() if e.metric]
    assert len(set(metrics)) == len(metrics)
    assert all(e.metric for e in EVENTS.values() if e.loss or e.seldom)


def test_what_makes_events_alike_is_among_their_fields() -> None:
    assert all(set(e.seldom) <= set(e.fields) for e in EVENTS.values())


def test_a_sum_adds_a_field_of_its_event() -> None:
    assert all(e.metric.of in e.fields for e in EVENTS.values() if e.metric and e.metric.kind == "sum")


def test_every_event_is_reported_somewhere() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in Path(plaita.__file__).parent.rglob("*.py"))
    emitted = {name.lower() for name in re.findall(r"\.emit\(\s*(?:\w+\.)?([A-Z_]+)\b", source)}
    assert emitted == EVENTS.keys()


def test_a_name_is_declared_once() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        declare("lease_lost", "info", "Again.")
