"""Published flows with scripts, calculations and waits for callbacks and queues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plaita.core.flow import Flow
from plaita.runtime import Runtime

FLOWS = Path(__file__).parents[1] / "flows"
PLAIN = ("14-code-python", "15-calculate")


pytestmark = pytest.mark.usefixtures("default_settings")


def handed(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FLOWS / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", PLAIN)
def test_a_published_flow_gives_what_it_gave(name: str) -> None:
    flow = handed(name)
    assert Flow.model_validate(flow["flow"]).run(flow["input"]) == flow["expected"]


@pytest.mark.parametrize(
    "name", ["21-http-callback-redis-kafka-config", "25-redis-queue-config", "26-kafka-queue-config"]
)
def test_a_published_flow_waits_and_its_state_says_what_its_service_needs(name: str) -> None:
    flow = handed(name)
    with Runtime.open("memory:") as runtime:
        execution = runtime.start(Flow.model_validate(flow["flow"]), flow["input"])
        assert execution.wait(timeout=10)["status"] == "suspended"
        execution.resume({"any": "data"})
        assert execution.wait(timeout=10)["output"] == flow["expected"]


@pytest.mark.parametrize(
    "name", ["21-http-callback-redis-kafka-config", "25-redis-queue-config", "26-kafka-queue-config"]
)
def test_a_published_flow_that_waits_for_a_service_is_woken_by_an_event(name: str) -> None:
    flow = handed(name)
    types = {"http_callback": "http_callback", "redis_queue": "redis_message", "kafka_queue": "kafka_message"}
    with Runtime.open("memory:") as runtime:
        execution = runtime.start(Flow.model_validate(flow["flow"]), flow["input"])
        execution.wait(timeout=10)
        (wait,) = execution.inspect()["waits"]
        event_type = types[next(n["type"] for n in flow["flow"]["nodes"] if n["id"] == wait["node"])]
        runtime.publish_event(event_type, {"n": 1}, key="another execution")
        assert execution.inspect()["status"] == "suspended"
        runtime.publish_event(event_type, {"n": 1}, key=execution.id)
        assert execution.wait(timeout=10)["output"] == flow["expected"]
