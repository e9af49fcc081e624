"""Where events go: the log on stderr and named numbers. The object is passed around; nothing here is global."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from typing import Final, Protocol

from plaita.base.clock import Clock, SystemClock
from plaita.telemetry.event import Event, Field
from plaita.telemetry.events import EVENT_FIELD_DROPPED
from plaita.telemetry.numbers import Numbers, Reading

_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_TEXT_MAX: Final = 300
SELDOM_MS: Final = 10_000
"""So long there is one line of an event that is written seldom: an outage is told once, not by everybody it meets."""


class Telemetry(Protocol):
    """What a shell needs in order to report."""

    def emit(self, event: Event, /, **fields: Field) -> None:
        """Report one fact; never raises. A declared field may be missing, an undeclared one is dropped and counted."""


class LogTelemetry:
    """Events as log lines of the logger ``plaita`` and as numbers. Safe to use from several threads.

    With ``counts`` false nothing is counted: for a process whose numbers nobody can read.
    """

    def __init__(
        self, logger: logging.Logger | None = None, *, counts: bool = True, clock: Clock | None = None
    ) -> None:
        self._logger = logger or logging.getLogger("plaita")
        self._numbers, self._counts = Numbers(), counts
        self._clock, self._lock = clock or SystemClock(), threading.Lock()
        self._written: dict[tuple[Field, ...], float] = {}

    def emit(self, event: Event, /, **fields: Field) -> None:
        if self._counts and event.metric is not None:
            self._numbers.count(event.metric, fields)
        level = _LEVELS[event.level]
        if self._logger.isEnabledFor(level) and not (event.seldom and self._was_written(event, fields)):
            shown = [f"{name}={_shown(fields[name])}" for name in event.fields if name in fields]
            told = {name: fields[name] for name in event.fields if name in fields}
            extras = {"plaita_event": event.name, "plaita_fields": told}
            self._logger.log(level, "%s", " ".join([event.name, *shown]), extra=extras)
        for name in fields:
            if name not in event.fields:
                self.emit(EVENT_FIELD_DROPPED, event=event.name, field=name)

    def _was_written(self, event: Event, fields: Mapping[str, Field]) -> bool:
        """Whether there is a line of one like it that is not old; if not, there is one now."""
        alike, now = (event.name, *(fields.get(name) for name in event.seldom)), self._clock.elapsed_ms()
        with self._lock:
            before = self._written.get(alike)
            if before is not None and now - before < SELDOM_MS:
                return True
            self._written[alike] = now
        return False

    def numbers(self) -> dict[str, float]:
        """The metrics so far, by name; a metric that never moved is 0."""
        return self._numbers.totals()

    def readings(self) -> list[Reading]:
        """The metrics so far, with their labels and buckets."""
        return self._numbers.readings()


def _shown(value: Field) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    text = value if len(value) <= _TEXT_MAX else value[:_TEXT_MAX] + "…"
    return text if text.isprintable() and " " not in text and text else repr(text)
