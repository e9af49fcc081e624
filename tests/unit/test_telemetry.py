"""An event is a log line and a number; what it may carry is declared."""

import logging

import pytest

from plaita.telemetry import EVENTS, LogTelemetry, events
from plaita.telemetry.event import declare


def test_an_event_is_one_line_with_its_fields_in_declared_order(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = LogTelemetry(logging.getLogger("plaita.test"))
    with caplog.at_level(logging.DEBUG, "plaita.test"):
        telemetry.emit(events.RUN_FAILED, path="a b", code=None, kind="node_error", run_id="r1", flow_id="")
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "run_failed run_id=r1 flow_id='' kind=node_error code=null path='a b'"


def test_counters_count_events_and_sums_add_a_field() -> None:
    telemetry = LogTelemetry()
    for count in (2, 3):
        telemetry.emit(events.RUNS_PRUNED, count=count)
    telemetry.emit(events.LEASE_LOST, run_id="r1")
    numbers = telemetry.numbers()
    assert (numbers["plaita_runs_pruned"], numbers["plaita_leases_lost"], numbers["plaita_runs_failed"]) == (5, 1, 0)


def test_a_line_break_in_a_field_stays_in_its_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "plaita"):
        LogTelemetry().emit(events.IMPORT_FAILED, module="m", error="one\ntwo " + "x" * 1_000)
    message = caplog.records[0].getMessage()
    assert "\n" not in message
    assert len(message) < 500


def test_an_undeclared_field_is_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = LogTelemetry()
    with caplog.at_level(logging.DEBUG, "plaita"):
        telemetry.emit(events.RUN_PARKED, run_id="r1", password="hunter2")
    assert "hunter2" not in caplog.text
    assert telemetry.numbers()["plaita_event_fields_dropped"] == 1


def test_whatever_is_lost_has_a_counter_of_its_own() -> None:
    metrics = [e.metric.name for e in EVENTS.values() if e.metric]
    assert len(set(metrics)) == len(metrics)
    assert all(e.metric for e in EVENTS.values() if e.loss)


def test_a_sum_adds_a_field_of_its_event() -> None:
    assert all(e.metric.of in e.fields for e in EVENTS.values() if e.metric and e.metric.kind == "sum")


def test_an_event_that_shows_in_a_timeline_names_its_execution() -> None:
    assert all("run_id" in e.fields for e in EVENTS.values() if e.timeline)


def test_a_name_is_declared_once() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        declare("run_failed", "info", "Again.")
