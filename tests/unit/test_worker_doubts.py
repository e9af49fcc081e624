"""A call that was under way when its process died: repeated, unless it would be another request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from plaita import Flow, Node
from plaita.backends.sqlite import SqliteBackend
from plaita.base.json import decode
from plaita.control import acting
from plaita.control.starting import StartOptions, start_flow
from plaita.node.registry import get_default_registry
from plaita.ports.queries import RunView
from plaita.ports.values import RunId
from plaita.server.worker import Worker, WorkerOptions

RUN = RunId("r1")


class Payment(Node):
    """Hangs in the first process, answers in the second."""

    node_type: ClassVar[str] = "doubtful_payment"
    hang: ClassVar[bool] = True
    to: str

    async def arun(self, execution: Any) -> Any:
        if self.hang:
            await asyncio.Event().wait()
        return execution.evaluate(self.to)


@pytest.fixture
def flow() -> Callable[[str], Flow]:
    get_default_registry().register(Payment)
    Payment.hang = True

    def build(on_doubt: str) -> Flow:
        nodes = [
            {"type": "start", "id": "s", "next": "pay"},
            {"type": "doubtful_payment", "id": "pay", "to": "$ENV.ACCOUNT", "onDoubt": on_doubt, "next": "e"},
            {"type": "end", "id": "e", "output": "$NODE.pay"},
        ]
        return Flow.model_validate({"flow_id": "f", "expose_env": ["ACCOUNT"], "nodes": nodes})

    return build


async def work(store: SqliteBackend, env: Mapping[str, str], until: Callable[[RunView], bool]) -> RunView:
    """A process that works until the execution looks like that, and then dies with what it has begun."""
    worker = Worker(store, WorkerOptions(env=env, drain_ms=0))
    stop = asyncio.Event()
    working = asyncio.create_task(worker.run(stop))
    view = await store.run(RUN)
    while view is None or not until(view) or (view.token is not None and not worker.running):
        await worker.changed(10)
        view = await store.run(RUN)
    stop.set()
    await working
    return view


async def interrupted(store: SqliteBackend, flow: Flow) -> None:
    await start_flow(store, flow, {}, StartOptions(execution_id=RUN))
    await work(store, {"ACCOUNT": "alpha-account"}, lambda view: view.seq >= 1)
    Payment.hang = False


def more_tries_than(tries: int) -> Callable[[RunView], bool]:
    return lambda view: view.tries > tries or over(view)


def over(view: RunView) -> bool:
    return view.status in ("completed", "error") or bool(view.blocked_reason)


async def test_a_call_that_would_be_the_same_request_is_repeated(tmp_path: Path, flow: Callable[[str], Flow]) -> None:
    store = SqliteBackend(tmp_path / "s.db")
    await interrupted(store, flow("block"))
    view = await work(store, {"ACCOUNT": "alpha-account"}, over)
    assert (view.status, view.output) == ("completed", b'"alpha-account"')
    await store.close()


async def test_a_call_that_would_be_another_request_is_repeated_by_default(
    tmp_path: Path, flow: Callable[[str], Flow]
) -> None:
    store = SqliteBackend(tmp_path / "s.db")
    await interrupted(store, flow("rerun"))
    view = await work(store, {"ACCOUNT": "beta-account"}, over)
    assert (view.status, view.output) == ("completed", b'"beta-account"')
    await store.close()


async def test_a_call_that_would_be_another_request_blocks_when_its_node_says_so_until_somebody_retries(
    tmp_path: Path, flow: Callable[[str], Flow]
) -> None:
    store = SqliteBackend(tmp_path / "s.db")
    await interrupted(store, flow("block"))
    view = await work(store, {"ACCOUNT": "beta-account"}, over)
    assert view.status == "running"
    assert "other arguments" in view.blocked_reason
    assert await store.audit() == []
    await acting.retry(store, RUN)
    view = await work(store, {"ACCOUNT": "beta-account"}, over)
    assert (view.status, view.output) == ("completed", b'"beta-account"')
    await store.close()


async def test_one_node_that_says_block_blocks_whatever_the_calls_beside_it_say(tmp_path: Path) -> None:
    get_default_registry().register(Payment)
    Payment.hang = True

    def branch(name: str, on_doubt: str) -> dict[str, Any]:
        pay = {"type": "doubtful_payment", "id": "pay", "to": "$ENV.ACCOUNT", "onDoubt": on_doubt, "next": "e"}
        nodes = [{"type": "start", "id": "s", "next": "pay"}, pay, {"type": "end", "id": "e", "output": "$NODE.pay"}]
        return {"name": name, "flow": {"nodes": nodes}}

    branches = [branch("careless", "rerun"), branch("careful", "block")]
    nodes = [
        {"type": "start", "id": "s", "next": "p"},
        {"type": "parallel", "id": "p", "branches": branches, "next": "e"},
        {"type": "end", "id": "e", "output": "$NODE.p"},
    ]
    store = SqliteBackend(tmp_path / "s.db")
    await interrupted(store, Flow.model_validate({"flow_id": "f", "expose_env": ["ACCOUNT"], "nodes": nodes}))
    view = await work(store, {"ACCOUNT": "beta-account"}, over)
    assert "p:careful/pay" in view.blocked_reason
    await acting.retry(store, RUN)
    view = await work(store, {"ACCOUNT": "beta-account"}, over)
    assert decode(view.output or b"null") == {"careless": "beta-account", "careful": "beta-account"}
    await store.close()


async def test_the_history_shows_the_input_of_a_call_without_the_values_of_exposed_variables(
    tmp_path: Path, flow: Callable[[str], Flow]
) -> None:
    store = SqliteBackend(tmp_path / "s.db")
    await interrupted(store, flow("rerun"))
    entries = [decode(entry.data) for entry in await store.history(RUN)]
    (started,) = [entry for entry in entries if entry["event"] == "node_start"]
    assert started["input"] == {"to": "•••"}
    await store.close()


async def test_an_execution_that_killed_its_processes_can_be_retried_with_its_waits_open_again(tmp_path: Path) -> None:
    get_default_registry().register(Payment)
    Payment.hang = True
    waiting = [
        {"type": "start", "id": "s", "next": "w"},
        {"type": "event", "id": "w", "event_type": "go", "next": "e"},
        {"type": "end", "id": "e", "output": "$NODE.w.event_data"},
    ]
    killing = [
        {"type": "start", "id": "s", "next": "pay"},
        {"type": "doubtful_payment", "id": "pay", "to": "bank", "next": "e"},
        {"type": "end", "id": "e", "output": "$NODE.pay"},
    ]
    branches = [{"name": "waits", "flow": {"nodes": waiting}}, {"name": "kills", "flow": {"nodes": killing}}]
    nodes = [
        {"type": "start", "id": "s", "next": "p"},
        {"type": "parallel", "id": "p", "branches": branches, "next": "e"},
        {"type": "end", "id": "e", "output": "$NODE.p"},
    ]
    store = SqliteBackend(tmp_path / "s.db")
    await start_flow(store, Flow.model_validate({"flow_id": "f", "nodes": nodes}), {}, StartOptions(execution_id=RUN))
    view = await work(store, {}, lambda view: view.seq >= 1)
    while view.status != "error":
        view = await work(store, {}, more_tries_than(view.tries))
    assert view.error is not None
    assert decode(view.error)["error_type"] == "worker_lost"
    assert await store.waits(RUN) == []
    Payment.hang = False
    await acting.retry(store, RUN)
    view = await work(store, {}, lambda view: view.status == "suspended")
    (wait,) = await store.waits(RUN)
    await store.wake(RUN, wait.wait_id, b"7")
    view = await work(store, {}, over)
    assert (view.status, decode(view.output or b"null")) == ("completed", {"waits": 7, "kills": "bank"})
    assert await store.audit() == []
    await store.close()
