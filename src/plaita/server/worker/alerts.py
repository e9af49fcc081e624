"""Dead letters told to a webhook: at most once each, and never in the way of the work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from plaita.base.clock import Clock
from plaita.telemetry import events as told
from plaita.telemetry.event import Event, Field
from plaita.telemetry.numbers import Reading
from plaita.telemetry.sink import LogTelemetry

WAITING_MAX: Final = 100
TIMEOUT_S: Final = 5.0
LAST_S: Final = 2.0
"""How long what still waits may take when the process ends."""


UNKNOWN: Final = (
    "dlq_id", "dlq_length", "delivery_count", "schema_version", "config_family", "config_generation",
    "budget_generation", "trimmed_count",
)  # fmt: skip
"""Documented fields that are null where the store does not tell them."""


@dataclass(frozen=True, slots=True)
class Sender:
    """What every letter says of where it comes from."""

    queue: str
    dlq_key: str
    dlq_max_len: int
    instance: str


@dataclass(slots=True)
class Alerts:
    """Posts one JSON object a dead letter: ``event`` (``dead_letter``), ``queue``, ``dlq_key``, ``dlq_max_len``,
    ``message_id``, ``reason``, ``instance_id``, ``ts`` (seconds since 1970) and the documented fields that are not
    known as null. Nothing is tried twice."""

    url: str
    sender: Sender
    clock: Clock
    telemetry: LogTelemetry
    _queue: asyncio.Queue[dict[str, Any]] = field(default_factory=lambda: asyncio.Queue(WAITING_MAX))
    _task: asyncio.Task[None] | None = None
    _under_way: int = 0

    @property
    def pending(self) -> int:
        """Letters that are still to be posted."""
        return self._queue.qsize() + self._under_way

    def begin(self) -> None:
        """Post from now on."""
        self._task = asyncio.create_task(self._post_all())

    async def end(self) -> None:
        """Post what waits, for a moment, and stop; what is left counts as dropped."""
        if self._task is None:
            return
        try:
            async with asyncio.timeout(LAST_S):
                await self._queue.join()
        except TimeoutError:
            while not self._queue.empty():
                self.telemetry.emit(told.ALERT_DROPPED, message_id=self._queue.get_nowait()["message_id"])
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def offer(self, fields: Mapping[str, Field]) -> None:
        """A message became a dead letter. Returns at once."""
        letter = {
            **dict.fromkeys(UNKNOWN),
            "event": "dead_letter",
            "queue": self.sender.queue,
            "dlq_key": self.sender.dlq_key,
            "dlq_max_len": self.sender.dlq_max_len,
            "instance_id": self.sender.instance,
            "ts": self.clock.now_ms() / 1000,
            **fields,
        }
        try:
            self._queue.put_nowait(letter)
        except asyncio.QueueFull:
            self.telemetry.emit(told.ALERT_DROPPED, message_id=fields.get("message_id"))

    async def _post_all(self) -> None:
        import httpx

        async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
            while True:
                letter = await self._queue.get()
                self._under_way = 1
                try:
                    async with asyncio.timeout(TIMEOUT_S):
                        (await client.post(self.url, json=letter)).raise_for_status()
                except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as e:
                    self.telemetry.emit(told.ALERT_FAILED, message_id=letter["message_id"], error=_reason(e))
                else:
                    self.telemetry.emit(told.ALERT_SENT, message_id=letter["message_id"])
                finally:
                    self._under_way = 0
                    self._queue.task_done()


class AlertingTelemetry:
    """Reports as ``inner`` does, and tells the webhook of what it has to hear."""

    def __init__(self, inner: LogTelemetry, alerts: Alerts) -> None:
        self._inner, self._alerts = inner, alerts

    def emit(self, event: Event, /, **fields: Field) -> None:
        self._inner.emit(event, **fields)
        if event is told.MESSAGE_REFUSED:
            self._alerts.offer(fields)

    def readings(self) -> list[Reading]:
        """What was counted."""
        return self._inner.readings()


def _reason(error: Exception) -> str:
    """Without the URL, which may be a secret as a whole."""
    response = getattr(error, "response", None)
    return type(error).__name__ if response is None else f"it answered {response.status_code}"
