"""The log of a worker: for people, or one JSON object a line; no secret in either."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from plaita.telemetry import LogTelemetry, events
from plaita.telemetry.lines import Form, JsonLines, TextLines, log_to_stderr

SECRETS = ["hunter22"]


class Written:
    """What a logger of its own writes."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self._stream = io.StringIO()
        self.logger = logging.Logger("test")
        handler = logging.StreamHandler(self._stream)
        handler.setFormatter(formatter)
        self.logger.addHandler(handler)
        self.telemetry = LogTelemetry(self.logger)

    @property
    def lines(self) -> list[str]:
        return self._stream.getvalue().splitlines()

    @property
    def shapes(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


def test_an_event_is_one_json_object_with_its_fields_beside_the_stable_keys() -> None:
    log = Written(JsonLines((), "w-1"))
    log.telemetry.emit(events.LEASE_LOST, run_id="r1", holder="h\nx")
    log.telemetry.emit(events.RUNS_PRUNED, count=3)
    lost, pruned = log.shapes
    assert list(lost) == ["time", "level", "event", "pid", "instance", "run_id", "holder"]
    assert (lost["level"], lost["event"], lost["instance"], lost["holder"]) == (
        "warning", "lease_lost", "w-1", "h\nx",
    )  # fmt: skip
    assert lost["time"].endswith("Z")
    assert pruned["count"] == 3


def test_what_is_no_event_has_a_message_and_its_exception() -> None:
    log = Written(JsonLines((), ""))
    try:
        raise KeyError("x")
    except KeyError:
        log.logger.exception("foreign %s", "text")
    [shape] = log.shapes
    assert (shape["event"], shape["message"]) == (None, "foreign text")
    assert "KeyError" in shape["exception"]


@pytest.mark.parametrize("formatter", [JsonLines(SECRETS, ""), TextLines(SECRETS)])
def test_no_line_shows_a_secret_or_the_login_of_a_url(formatter: logging.Formatter) -> None:
    log = Written(formatter)
    log.telemetry.emit(
        events.STORE_UNAVAILABLE, store="redis://ann:pa55@host:1/0", verb="claim", error="refused hunter22"
    )
    [line] = log.lines
    assert "hunter22" not in line and "pa55" not in line and "ann" not in line
    assert "@host:1/0" in line


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    found = logging.getLogger("plaita")
    before = found.handlers[:], found.level, found.propagate
    found.handlers.clear()
    yield found
    found.handlers[:], found.level, found.propagate = before


@pytest.mark.parametrize(("form", "kind"), [("text", TextLines), ("json", JsonLines)])
def test_the_last_word_about_the_form_holds(logger: logging.Logger, form: Form, kind: type) -> None:
    log_to_stderr("INFO")
    log_to_stderr("WARNING", form)
    [handler] = logger.handlers
    assert isinstance(handler.formatter, kind)
    assert logger.level == logging.WARNING
