"""Dead letters are posted to a webhook: each once, and whoever waits for nothing waits for nobody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from plaita.base.clock import SystemClock
from plaita.server.worker.alerts import WAITING_MAX, AlertingTelemetry, Alerts, Sender
from plaita.telemetry import LogTelemetry, events
from tests.support.http_stub import Reply, serving


@asynccontextmanager
async def alerting(url: str) -> AsyncIterator[AlertingTelemetry]:
    """Telemetry that tells a webhook; at the end everything has been tried."""
    inner = LogTelemetry()
    alerts = Alerts(url, Sender("q", "q:dlq", 1_000, "w-1"), SystemClock(), inner)
    alerts.begin()
    yield AlertingTelemetry(inner, alerts)
    await alerts.end()


def numbers(telemetry: AlertingTelemetry) -> tuple[float, float, float]:
    found = {r.metric.name: sum(r.values.values()) for r in telemetry.readings()}
    return found["plaita_alerts_sent"], found["plaita_alerts_failed"], found["plaita_alerts_dropped"]


async def test_a_dead_letter_is_posted_in_the_documented_shape_and_other_events_are_not() -> None:
    with serving(lambda seen: Reply(204)) as stub:
        async with alerting(stub.url()) as telemetry:
            telemetry.emit(events.MESSAGE_REFUSED, message_id="m1", reason="invalid_payload: no JSON")
            telemetry.emit(events.MESSAGE_LATE, message_id="m2", answer="NoRun")
        [seen] = stub.seen
    body = json.loads(seen.body)
    assert {name: body[name] for name in ("event", "queue", "dlq_key", "message_id", "reason", "dlq_max_len")} == {
        "event": "dead_letter", "queue": "q", "dlq_key": "q:dlq", "message_id": "m1",
        "reason": "invalid_payload: no JSON", "dlq_max_len": 1_000,
    }  # fmt: skip
    assert body["delivery_count"] is None and body["ts"] > 0
    assert numbers(telemetry) == (1, 0, 0)


async def test_a_webhook_that_refuses_or_is_not_there_is_counted_and_not_asked_again() -> None:
    with serving(lambda seen: Reply(503)) as stub:
        async with alerting(stub.url()) as telemetry:
            telemetry.emit(events.MESSAGE_REFUSED, message_id="m1", reason="x")
        assert len(stub.seen) == 1
    async with alerting(stub.url()) as gone:
        gone.emit(events.MESSAGE_REFUSED, message_id="m2", reason="x")
    assert (numbers(telemetry), numbers(gone)) == ((0, 1, 0), (0, 1, 0))


async def test_more_letters_than_may_wait_are_dropped_and_counted_without_waiting() -> None:
    with serving(lambda seen: Reply(204)) as stub:
        async with alerting(stub.url()) as telemetry:
            for number in range(WAITING_MAX + 3):
                telemetry.emit(events.MESSAGE_REFUSED, message_id=f"m{number}", reason="x")
    assert numbers(telemetry) == (WAITING_MAX, 0, 3)


async def test_what_a_silent_webhook_did_not_take_is_dropped_at_the_end() -> None:
    with serving(lambda seen: Reply(hang=True)) as stub:
        async with asyncio.timeout(10), alerting(stub.url()) as telemetry:
            for number in range(3):
                telemetry.emit(events.MESSAGE_REFUSED, message_id=f"m{number}", reason="x")
    assert numbers(telemetry)[2] == 2
