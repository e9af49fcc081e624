"""Where events go: the log on stderr and named numbers. The object is passed around; nothing here is global."""

from __future__ import annotations

import json
import logging
import threading
from typing import Final, Protocol

from plaita.telemetry.event import EVENTS, Event, Field
from plaita.telemetry.events import EVENT_FIELD_DROPPED

_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_TEXT_MAX: Final = 300


class Telemetry(Protocol):
    """What a shell needs in order to report."""

    def emit(self, event: Event, /, **fields: Field) -> None:
        """Report one fact; never raises. A declared field may be missing, an undeclared one is dropped and counted."""


class LogTelemetry:
    """Events as log lines of the logger ``plaita`` and as numbers. Safe to use from several threads."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger("plaita")
        self._lock = threading.Lock()
        self._numbers: dict[str, float] = {}

    def emit(self, event: Event, /, **fields: Field) -> None:
        extra = fields.keys() - set(event.fields)
        self._count(event, fields)
        level = _LEVELS[event.level]
        if self._logger.isEnabledFor(level):
            shown = [f"{name}={_shown(fields[name])}" for name in event.fields if name in fields]
            self._logger.log(level, "%s", " ".join([event.name, *shown]), extra={"plaita_event": event.name})
        for name in sorted(extra):
            self.emit(EVENT_FIELD_DROPPED, event=event.name, field=name)

    def numbers(self) -> dict[str, float]:
        """The metrics so far, by name; a metric that never moved is 0."""
        with self._lock:
            return {e.metric.name: self._numbers.get(e.metric.name, 0) for e in EVENTS.values() if e.metric}

    def _count(self, event: Event, fields: dict[str, Field]) -> None:
        if event.metric is None:
            return
        grows = fields.get(event.metric.of, 0) if event.metric.kind == "sum" else 1
        if isinstance(grows, int | float):
            with self._lock:
                self._numbers[event.metric.name] = self._numbers.get(event.metric.name, 0) + grows


def log_to_stderr(level: str) -> None:
    """Show events from ``level`` (``DEBUG``, ``INFO``, ``WARNING``, ``ERROR``) up on stderr; repeats are harmless."""
    logger = logging.getLogger("plaita")
    logger.setLevel(level)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False


def _shown(value: Field) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    text = value if len(value) <= _TEXT_MAX else value[:_TEXT_MAX] + "…"
    return text if text.isprintable() and " " not in text and text else repr(text)
