"""What becomes of an execution whose definition is published anew under its version while it waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from plaita import Flow
from plaita.app import worker_options
from plaita.backends.memory import MemoryBackend
from plaita.base.json import decode
from plaita.control.starting import StartOptions, publish, start_published
from plaita.core.fingerprint import FLOW_HASH_ALGO, compute_flow_definition_hash
from plaita.ports.runs import HandBack, Reopened, SettleAnswer, Step
from plaita.ports.values import RunId
from plaita.server.worker import Worker
from plaita.settings import load_settings

RUN = RunId("r1")


def definition(output: Any = 1, version: str = "1", **more: Any) -> dict[str, Any]:
    nodes = [
        {"type": "start", "id": "s", "next": "w"},
        {"type": "event", "id": "w", "event_type": "go", "next": "e"},
        {"type": "end", "id": "e", "output": output},
    ]
    return {"flow_id": "f", "version": version, "nodes": nodes, **more}


class Place:
    """A store, and workers of one policy."""

    def __init__(self, change: str) -> None:
        self.store = MemoryBackend()
        self.options = worker_options(load_settings({"PLAITA_DEFINITION_CHANGE": change}))

    async def publish(self, document: dict[str, Any]) -> None:
        await publish(self.store, Flow.model_validate(document))

    async def work_until(self, *statuses: str) -> Any:
        worker, stop = Worker(self.store, self.options), asyncio.Event()
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            group.create_task(worker.run(stop))
            while (view := await self.store.run(RUN)) is None or view.status not in statuses:
                await worker.changed(10)
            stop.set()
        return view

    def record_steps(self) -> list[Step]:
        """The steps that are settled from here on."""
        steps: list[Step] = []
        settle = self.store.settle

        async def recorded(step: Step) -> SettleAnswer:
            steps.append(step)
            return await settle(step)

        self.store.settle = recorded  # type: ignore[method-assign]
        return steps

    async def begin(self) -> None:
        """An execution waits for its event."""
        await self.publish(definition())
        await start_published(self.store, "f", {}, StartOptions(execution_id=RUN))
        await self.work_until("suspended")

    async def go(self, event_id: str = "e1") -> Any:
        """Its event comes; the execution as it ends."""
        await self.store.publish(event_id, "go", None, b"{}")
        return await self.work_until("completed", "error")


async def test_it_goes_on_with_the_definition_it_began_with() -> None:
    place = Place("pinned")
    await place.begin()
    await place.publish(definition(2))
    ended = await place.go()
    assert (ended.status, decode(ended.output)) == ("completed", 1)


async def test_it_ends_with_the_documented_error_where_a_change_is_refused() -> None:
    place = Place("refuse")
    await place.begin()
    await place.publish(definition(2))
    ended = await place.go()
    error = decode(ended.error)
    stored, current = (compute_flow_definition_hash(definition(output)) for output in (1, 2))
    documented = {
        "code": -500, "error_type": "flow_hash_mismatch", "stored_flow_hash": stored, "current_flow_hash": current,
        "stored_flow_hash_algo": FLOW_HASH_ALGO, "current_flow_hash_algo": FLOW_HASH_ALGO, "upgrade_suspected": False,
    }  # fmt: skip
    assert ended.status == "error"
    assert {name: error[name] for name in documented} == documented
    assert "published anew" in error["message"] and "PLAITA_DEFINITION_CHANGE=pinned" in error["hint"]


async def test_one_that_was_claimed_and_given_back_has_not_begun() -> None:
    place = Place("refuse")
    await place.publish(definition())
    await start_published(place.store, "f", {}, StartOptions(execution_id=RUN))
    [claim] = await place.store.claim("h.n", 1)
    await place.store.settle(Step(RUN, claim.token, 1, "digest", {}, HandBack()))
    await place.publish(definition(2))
    steps = place.record_steps()
    await place.work_until("suspended", "error")
    assert [step.progress for step in steps] == [True]
    await place.publish(definition())
    assert (await place.go()).status == "completed"


async def test_a_retry_waits_again_once_the_definition_is_there_again() -> None:
    place = Place("refuse")
    await place.begin()
    await place.publish(definition(2))
    await place.go()
    await place.publish(definition())
    assert await place.store.reopen(RUN) == Reopened(RUN)
    await place.work_until("suspended")
    assert (await place.go("e2")).status == "completed"


@pytest.mark.parametrize("other", [definition(2, "2"), definition(), definition(2, flow_id="g")])
async def test_only_another_definition_under_its_own_version_is_a_change(other: dict[str, Any]) -> None:
    place = Place("refuse")
    await place.begin()
    await place.publish(other)
    ended = await place.go()
    assert (ended.status, decode(ended.output)) == ("completed", 1)
