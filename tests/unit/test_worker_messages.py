"""What producers send reaches a worker through the inbox; what it refuses is counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plaita import Flow
from plaita.backends.limits import Limits
from plaita.backends.memory import MemoryBackend
from plaita.backends.verbs.messages import Wanted, read
from plaita.base.json import encode
from plaita.control import acting, looking
from plaita.control.starting import publish
from plaita.ports.inbox import DeadLettered, Message
from plaita.ports.values import RunId
from plaita.server.worker import Surroundings, Worker, WorkerOptions
from plaita.server.worker.messages import ACCEPT_MAX
from plaita.telemetry import LogTelemetry

RUN = RunId("r1")
NUMBER = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def flow(*nodes: dict[str, Any], **fields: Any) -> Flow:
    return Flow.model_validate({"flow_id": "f", "nodes": list(nodes), **fields})


def doubling() -> Flow:
    return flow(
        {"type": "start", "id": "s", "next": "e"},
        {"type": "end", "id": "e", "output": "$( $INPUT.x * 2 )"},
        inputType=NUMBER,
    )


async def send(store: MemoryBackend, message_id: str, **body: Any) -> None:
    await store.offer(message_id, encode(body))


async def work(
    store: MemoryBackend, until: Callable[[], Coroutine[Any, Any, bool]], **options: Any
) -> dict[str, float]:
    """Work until it is so; what was counted."""
    telemetry, stop = LogTelemetry(), asyncio.Event()
    worker = Worker(store, WorkerOptions(poll_ms=10, **options), Surroundings(telemetry=telemetry))
    working = asyncio.create_task(worker.run(stop))
    while not await until():
        await worker.changed(10)
    stop.set()
    await working
    return telemetry.numbers()


async def test_an_execution_that_a_message_started_runs() -> None:
    store = MemoryBackend()
    await publish(store, doubling())
    await send(store, "m1", type="start", execution_id=RUN, flow_id="f", params={"x": 21})

    async def ended() -> bool:
        view = await store.run(RUN)
        return view is not None and view.status == "completed"

    await work(store, ended)
    view = await store.run(RUN)
    assert view is not None
    assert view.output == b"42"


async def test_params_that_violate_the_input_type_end_the_execution_they_started() -> None:
    store = MemoryBackend()
    await publish(store, doubling())
    await send(store, "m1", type="start", execution_id=RUN, flow_id="f", params={"x": "many"})

    async def ended() -> bool:
        view = await store.run(RUN)
        return view is not None and view.status == "error"

    await work(store, ended)
    assert (await looking.inspect(store, RUN))["error"]["kind"] == "input_error"
    assert await store.dead_letters() == ([], "")


async def test_what_is_refused_or_comes_too_late_is_counted() -> None:
    store = MemoryBackend()
    await publish(store, doubling())
    await send(store, "m1", type="start", execution_id=RUN, flow_id="f", params={"x": 1})
    await send(store, "m2", type="resume", execution_id=RUN, wait_id="none")
    await send(store, "m3", type="cancel", execution_id="unknown")
    await store.offer("m4", b"NaN")

    async def accepted() -> bool:
        return await store.backlog() == 0

    numbers = await work(store, accepted)
    assert (numbers["plaita_messages_refused"], numbers["plaita_messages_late"]) == (2, 1)


async def test_a_full_worker_still_hears_a_cancel() -> None:
    store = MemoryBackend()
    waiting = flow(
        {"type": "start", "id": "s", "next": "w"},
        {"type": "event", "id": "w", "event_type": "never", "next": "e"},
        {"type": "end", "id": "e"},
    )
    await publish(store, waiting)
    await send(store, "m1", type="start", execution_id=RUN, flow_id="f")
    await send(store, "m2", type="cancel", execution_id=RUN)

    async def cancelled() -> bool:
        view = await store.run(RUN)
        return view is not None and view.status == "cancelled"

    await work(store, cancelled, concurrency=0)
    assert await store.backlog() == 0


async def test_a_full_worker_carries_on_what_others_are_to_be_told() -> None:
    store = MemoryBackend(limits=Limits(chunk=1))
    waiting = flow(
        {"type": "start", "id": "s", "next": "w"},
        {"type": "event", "id": "w", "event_type": "go", "next": "e"},
        {"type": "end", "id": "e"},
    )
    await publish(store, waiting)
    for number in range(3):
        await send(store, f"m{number}", type="start", execution_id=f"r{number}", flow_id="f")

    async def wait() -> bool:
        return (await store.counts()).by_status["suspended"] == 3

    async def woken() -> bool:
        return not (await store.publish("e", "go", None, b"{}")).pending

    await work(store, wait)
    assert (await store.publish("e", "go", None, b"{}")).pending
    await work(store, woken, concurrency=0)
    assert [await store.waits(RunId(f"r{number}")) for number in range(3)] == [[], [], []]


async def test_a_worker_that_serves_one_execution_leaves_the_inbox_to_others() -> None:
    store = MemoryBackend()
    await send(store, "m1", type="cancel", execution_id=RUN)
    looks = iter([False, False, True])

    async def looked() -> bool:
        return next(looks)

    await work(store, looked, only=RUN)
    assert await store.backlog() == 1


async def test_more_messages_than_one_portion_are_all_accepted() -> None:
    store = MemoryBackend()
    for number in range(3 * ACCEPT_MAX):
        await acting.publish_event(store, "other", {}, None)
        await send(store, f"m{number}", type="event", event_type="pay", data={"n": number})

    async def accepted() -> bool:
        return await store.backlog() == 0

    await work(store, accepted)
    assert await store.dead_letters() == ([], "")


BODIES = st.dictionaries(
    st.sampled_from(
        ["type", "resume_type", "execution_id", "flow_id", "version", "params", "wait_id", "event_type", "event_id",
         "key", "data", "dedup_key", "tenant_id", "timestamp", "queue"]
    ),
    st.one_of(
        st.sampled_from(["start", "resume", "event", "cancel", "timeout", "0001-01-01T00:00:00+14:00", "9999-12-31"]),
        st.text(max_size=5), st.integers(), st.floats(), st.none(), st.lists(st.booleans(), max_size=1),
        st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
    ),
)  # fmt: skip


@given(st.one_of(st.binary(), BODIES.map(lambda body: json.dumps(body).encode())))
def test_whatever_the_bytes_are_they_are_read_or_refused_in_words(body: bytes) -> None:
    found = read(Message("m", body, 5))
    assert isinstance(found, DeadLettered | Wanted)
    if isinstance(found, DeadLettered):
        assert 0 < len(found.detail) <= 501
    else:
        assert found.since_ms <= 5


async def test_a_message_lets_a_wait_be_over_before_its_deadline() -> None:
    store = MemoryBackend()
    waiting = flow(
        {"type": "start", "id": "s", "next": "w"},
        {"type": "event", "id": "w", "event_type": "paid", "subscriptionTimeout": 3600, "next": "e"},
        {"type": "end", "id": "e", "output": "$NODE.w.status"},
    )
    await publish(store, waiting)
    await send(store, "m1", type="start", execution_id=RUN, flow_id="f")

    async def waits() -> bool:
        return bool(await store.waits(RUN))

    async def ended() -> bool:
        view = await store.run(RUN)
        return view is not None and view.status == "completed"

    await work(store, waits)
    [wait] = await store.waits(RUN)
    data = {"subscription_id": wait.wait_id, "event_type": "paid", "node_id": "w"}
    await send(store, "m2", type="resume", resume_type="timeout", execution_id=RUN, flow_id="f", data=data)
    await work(store, ended)
    view = await store.run(RUN)
    assert view is not None
    assert view.output == b'"timeout"'
