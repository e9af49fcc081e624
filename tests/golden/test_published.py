"""What an installation of the published system left on Redis is taken over, and goes on here to its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis

from plaita.backends.redis import RedisBackend
from plaita.base.clock import SystemClock
from plaita.base.json import decode, encode
from plaita.control import acting, looking
from plaita.control.adopting import adopt
from plaita.control.keeping import list_flows
from plaita.control.starting import StartOptions, start_published
from plaita.ports.runs import Reopened
from plaita.ports.values import RunId
from plaita.server.worker import Worker, WorkerOptions
from plaita.server.worker.bridge import EventBridge
from plaita.telemetry import LogTelemetry
from tests.support.published import restore


class Installation:
    """The server of the installation, with a store of ours on it."""

    def __init__(self, url: str) -> None:
        self.client: Any = redis.Redis.from_url(url, decode_responses=True)
        restore(self.client)
        self.store = RedisBackend(url)
        self.said: Any = None

    def content(self) -> dict[str, Any]:
        """Every key, and what the texts among them say."""
        return {k: self.client.get(k) if self.client.type(k) == "string" else None for k in self.client.keys("*")}

    async def adopt(self, *, dry_run: bool = False) -> dict[str, str]:
        return {j.execution_id: j.verdict async for j in adopt(self.store, self.store.published, dry_run=dry_run)}

    async def until(self, name: str, *statuses: str) -> Any:
        """Work until it is there; its output."""
        stop, worker = asyncio.Event(), Worker(self.store, WorkerOptions(poll_ms=20))
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            group.create_task(worker.run(stop))
            while (await looking.inspect(self.store, name))["status"] not in statuses:
                await worker.changed(10)
            stop.set()
        return (await looking.inspect(self.store, name))["output"]

    def subscription(self, name: str) -> str:
        row = json.loads(self.client.get(f"plaita:execution:{name}"))
        node = row["context"]["$NODE"][row["context"]["$LAST_NODE"]]
        found: str = node["subscription_id"]
        return found

    async def send(self, **body: Any) -> None:
        await self.store.offer("m", encode(body))
        (accepted,) = await self.store.accept(10)
        self.said = accepted.outcome

    async def status(self, name: str) -> str:
        view = await self.store.run(RunId(name))
        return "absent" if view is None else view.status


@pytest.fixture
async def installation(redis_url: str) -> AsyncIterator[Installation]:
    found = Installation(redis_url)
    yield found
    assert await found.store.audit() == []
    await found.store.close()
    found.client.close()


VERDICTS = {
    "waits": "taken_over", "waits-too": "taken_over", "pauses": "taken_over", "asks": "taken_over",
    "failed": "taken_over", "acme-waits": "taken_over", "held": "running", "lost": "no_definition",
    "changed": "other_definition", "broken": "unreadable", "ended": "ended",
}  # fmt: skip


async def test_each_row_is_taken_over_or_says_why_not(installation: Installation) -> None:
    before = installation.content()
    dry = await installation.adopt(dry_run=True)
    assert dry == {name: verdict.replace("taken_over", "take_over") for name, verdict in VERDICTS.items()}
    assert installation.content() == before
    assert await installation.adopt() == VERDICTS
    again = await installation.adopt()
    assert again == {name: "ours" if verdict == "taken_over" else verdict for name, verdict in VERDICTS.items()}


async def test_a_waiting_execution_goes_on_with_what_it_had(installation: Installation) -> None:
    await installation.adopt()
    await acting.resume(installation.store, "waits", "", {"by": "ann"}, "ann")
    assert await installation.until("waits", "completed") == {"sum": 5, "by": "ann"}
    row = json.loads(installation.client.get("plaita:execution:waits"))
    assert (row["status"], row["flow_id"], row["flow_version"]) == ("completed", "paid", "1")


async def test_an_execution_of_a_tenant_stays_with_it(installation: Installation) -> None:
    await installation.adopt()
    view = await installation.store.run(RunId("acme-waits"))
    assert view is not None
    assert view.tenant == "acme"
    bridge = EventBridge(installation.store, installation.store.programs, LogTelemetry(), None)
    event = {"event_type": "paid", "data": {"by": "bob"}, "correlation_id": "acme-waits"}
    assert not await bridge.handle(json.dumps({**event, "event_id": "1"}).encode())
    assert await bridge.handle(json.dumps({**event, "event_id": "2", "tenant_id": "acme"}).encode())
    assert await installation.until("acme-waits", "completed") == {"sum": 11, "by": "bob"}


async def test_a_delay_that_had_begun_ends_when_it_would_have_ended(installation: Installation) -> None:
    await installation.adopt()
    view = await installation.store.run(RunId("pauses"))
    assert view is not None
    assert view.due_ms is not None
    assert view.due_ms < SystemClock().now_ms()
    assert await installation.until("pauses", "completed") == {"total": 5}


async def test_an_approval_is_a_task_for_its_approver(installation: Installation) -> None:
    await installation.adopt()
    tasks, _ = await installation.store.inbox(actor="ann")
    assert [task.spec.title for task in tasks] == ["May I?"]
    await acting.decide(installation.store, tasks[0].task_id, acting.Verdict("ann", approved=True), SystemClock())
    assert await installation.until("asks", "completed") == "completed"


async def test_a_failed_execution_can_be_retried_at_its_node(installation: Installation) -> None:
    await installation.adopt()
    shape = await looking.inspect(installation.store, "failed")
    assert (shape["status"], shape["error"]["path"]) == ("error", ["call"])
    assert await installation.store.reopen(RunId("failed")) == Reopened(RunId("failed"))
    frames = await installation.store.frames(RunId("failed"))
    assert decode(frames["n|sum"])[1] == {"total": 5}


async def test_a_message_for_a_row_that_was_not_taken_over_takes_it_over(installation: Installation) -> None:
    subscription = installation.subscription("waits")
    data = {"event_type": "paid", "event_data": {"by": "eve"}, "subscription_id": subscription}
    await installation.send(type="resume", resume_type="event", flow_id="paid", execution_id="waits", data=data)
    assert await installation.until("waits", "completed") == {"sum": 5, "by": "eve"}
    assert await installation.status("waits-too") == "absent"


async def test_a_message_for_a_row_that_cannot_be_taken_over_says_what_to_do(installation: Installation) -> None:
    await installation.send(type="resume", resume_type="cancel", flow_id="other", execution_id="changed")
    assert installation.said.reason == "no_run"
    assert "the definition is not the one with which it began): plaita adopt" in installation.said.detail
    assert await installation.status("changed") == "absent"


async def test_published_flows_can_be_listed_and_started(installation: Installation) -> None:
    run_id = (await start_published(installation.store, "paid", {"a": 1, "b": 2}, StartOptions())).run_id
    await installation.until(run_id, "suspended")
    names = [(one["flow_id"], one["version"]) for one in (await list_flows(installation.store))["items"]]
    assert names == [("asks", "1.10"), ("calls", "1"), ("calm", "2"), ("other", "1"), ("paid", "1")]
    assert [v.version for v in await installation.store.versions("asks")] == ["1.10", "1.9"]
    assert await installation.store.flow("asks", "1.9") is not None
    assert await installation.store.flow("asks", "3") is None


async def test_a_message_may_start_a_published_flow(installation: Installation) -> None:
    await installation.send(type="start", flow_id="paid", version="1", execution_id="new", params={"a": 1, "b": 1})
    await installation.until("new", "suspended")
