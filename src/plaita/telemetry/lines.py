"""The log on stderr: lines for people, or one JSON object a line for whoever collects them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final, Literal

from plaita.base.json import Json
from plaita.base.redaction import MASK, redact

Form = Literal["text", "json"]
_LOGIN: Final = re.compile(r"(?<=://)[^\s/@]*@")
"""User and password in a URL."""


class TextLines(logging.Formatter):
    """``time LEVEL message``."""

    def __init__(self, secrets: Collection[str]) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        return str(_clean(super().format(record), self._secrets))


class JsonLines(logging.Formatter):
    """``time`` (ISO 8601, UTC), ``level``, ``event``, ``pid``, the ``instance`` of a worker with a name, and the fields
    of the event under their own names. What is no event of ours has a ``message`` instead."""

    def __init__(self, secrets: Collection[str], instance: str) -> None:
        super().__init__()
        self._secrets, self._instance = secrets, instance

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        shape: dict[str, Json] = {"time": at, "level": record.levelname.lower()}
        event = getattr(record, "plaita_event", None)
        shape["event"] = event
        shape["pid"] = record.process
        if self._instance:
            shape["instance"] = self._instance
        if event is None:
            shape["message"] = record.getMessage()
        shape |= getattr(record, "plaita_fields", {})
        if record.exc_info:
            shape["exception"] = self.formatException(record.exc_info)
        return json.dumps(_clean(shape, self._secrets), ensure_ascii=False, default=str)


def log_to_stderr(level: str, form: Form = "text", *, instance: str = "", secrets: Collection[str] = ()) -> None:
    """Show events from ``level`` (``DEBUG``, ``INFO``, ``WARNING``, ``ERROR``) up on stderr; the last call wins.

    ``secrets`` are texts that no line shows; users and passwords in URLs are never shown.
    """
    logger = logging.getLogger("plaita")
    logger.setLevel(level)
    if not logger.handlers:
        logger.addHandler(logging.StreamHandler())
        logger.propagate = False
    lines = JsonLines(secrets, instance) if form == "json" else TextLines(secrets)
    for handler in logger.handlers:
        handler.setFormatter(lines)


def _clean(value: Json, secrets: Collection[str]) -> Json:
    return _without_logins(redact(value, secrets))


def _without_logins(value: Json) -> Json:
    if isinstance(value, str):
        return _LOGIN.sub(f"{MASK}@", value)
    if isinstance(value, dict):
        return {key: _without_logins(item) for key, item in value.items()}
    return value
