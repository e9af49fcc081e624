"""What the settings of a worker change, and what it reports when it gives something up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from plaita import Flow, Node
from plaita.app import worker_options
from plaita.backends.memory import MemoryBackend
from plaita.backends.sqlite import SqliteBackend
from plaita.base.clock import SystemClock
from plaita.base.json import decode
from plaita.cli.main import main
from plaita.control.starting import StartOptions, start_flow
from plaita.node.registry import get_default_registry
from plaita.ports.values import RunId
from plaita.runtime.checking import check
from plaita.server.worker import Surroundings, Worker, WorkerOptions
from plaita.settings import load_settings
from plaita.telemetry import LogTelemetry

RUN = RunId("r1")


class Failing(Node):
    """Fails in a way that may pass."""

    node_type: ClassVar[str] = "failing_for_now"

    def execute(self, execution: Any) -> Any:
        raise OSError("not now")


class Long(Node):
    """Gives a long text."""

    node_type: ClassVar[str] = "long"

    def execute(self, execution: Any) -> Any:
        return "x" * 5_000


class Deaf(Node):
    """Hears nothing until the test ends."""

    node_type: ClassVar[str] = "deaf"
    begun: ClassVar[threading.Event] = threading.Event()
    let_go: ClassVar[threading.Event] = threading.Event()

    def execute(self, execution: Any) -> Any:
        self.begun.set()
        self.let_go.wait(10)
        return None


@pytest.fixture(autouse=True)
def custom_nodes() -> Iterator[None]:
    Deaf.begun.clear()
    Deaf.let_go.clear()
    for cls in (Failing, Long, Deaf):
        get_default_registry().register(cls)
    yield
    Deaf.let_go.set()


def flow(*middle: dict[str, Any]) -> Flow:
    """The nodes one after the other."""
    ids = [node["id"] for node in middle] + ["e"]
    nodes = [{**node, "next": following} for node, following in zip(middle, ids[1:], strict=True)]
    start = {"type": "start", "id": "s", "next": ids[0]}
    return Flow.model_validate({"flow_id": "f", "nodes": [start, *nodes, {"type": "end", "id": "e"}]})


async def work_to_the_end(options: WorkerOptions, telemetry: LogTelemetry, made: Flow) -> MemoryBackend:
    store = MemoryBackend()
    await start_flow(store, made, {}, StartOptions(execution_id=RUN))
    worker, stop = Worker(store, options, Surroundings(telemetry=telemetry)), asyncio.Event()
    working = asyncio.create_task(worker.run(stop))
    while (view := await store.run(RUN)) is not None and view.ended_ms is None:
        await worker.changed(10)
    stop.set()
    await working
    return store


async def test_the_attempts_of_a_node_at_an_error_that_ends_its_execution_are_those_of_the_settings() -> None:
    options = worker_options(load_settings({"PLAITA_MAX_DELIVERIES": "1"}))
    store = await work_to_the_end(options, LogTelemetry(), flow({"type": "failing_for_now", "id": "n"}))
    events = [decode(entry.data)["event"] for entry in await store.history(RUN)]
    assert (events.count("node_start"), events.count("retry")) == (1, 0)


async def test_whatever_is_cut_or_stopped_on_the_way_is_counted() -> None:
    body = {"nodes": [{"type": "start", "id": "s", "next": "e"}, {"type": "end", "id": "e", "output": 1}]}
    rounds = {"type": "while", "id": "w", "condition": "$( true )", "maxIterations": 2, "childFlow": body}
    telemetry = LogTelemetry()
    await work_to_the_end(WorkerOptions(), telemetry, flow(rounds, {"type": "long", "id": "n"}))
    numbers = telemetry.numbers()
    assert (numbers["plaita_rounds_limited"], numbers["plaita_history_values_clipped"]) == (1, 1)


async def test_a_thread_that_is_left_behind_is_counted(tmp_path: Path) -> None:
    telemetry = LogTelemetry()
    made = flow({"type": "deaf", "id": "n", "timeout": 50, "timeoutHandler": {"strategy": "continue"}})
    await work_to_the_end(WorkerOptions(), telemetry, made)
    assert telemetry.numbers()["plaita_threads_abandoned"] == 1


class Sleeper(SystemClock):
    """The clocks of a machine that may sleep."""

    def __init__(self) -> None:
        self.slept_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.slept_ms

    def elapsed_ms(self) -> float:
        return super().elapsed_ms() + self.slept_ms


async def test_while_the_machine_sleeps_no_active_time_goes_by() -> None:
    clock, stop = Sleeper(), asyncio.Event()
    store = MemoryBackend(clock)
    await start_flow(store, flow({"type": "deaf", "id": "n"}), {}, StartOptions(execution_id=RUN))
    worker = Worker(store, WorkerOptions(active_ms_max=60_000, renew_ms=20), Surroundings(clock=clock))
    working = asyncio.create_task(worker.run(stop))
    while not Deaf.begun.is_set():
        await worker.changed(10)
    clock.slept_ms = 3_600_000
    await worker.changed(100)
    Deaf.let_go.set()
    while (view := await store.run(RUN)) is not None and view.ended_ms is None:
        await worker.changed(10)
    stop.set()
    await working
    assert view is not None
    assert view.status == "completed"


def test_a_run_without_a_store_uses_the_time_zone_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "zone.yaml"
    written.write_text(
        "nodes:\n  - {id: s, type: start, next: e}\n  - {id: e, type: end, output: '$F.now(\"%Z\")'}\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PLAITA_TIMEZONE", "Asia/Tokyo")
    with pytest.raises(SystemExit) as ended:
        main(["run", str(written), "--once"])
    assert (ended.value.code, capsys.readouterr().out.strip()) == (0, '"JST"')


async def test_doctor_says_what_a_store_survives(tmp_path: Path) -> None:
    settings = load_settings({})
    memory, file = MemoryBackend(), SqliteBackend(tmp_path / "s.db")
    for store, status in ((memory, "warning"), (file, "ok")):
        [durability] = [c for c in await check(store, settings) if c.name == "durability"]
        assert durability.status == status
    await file.close()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PLAITA_TENANT_MAX_RUNNING", "3"),
        ("PLAITA_DURABILITY", "replica"),
        ("PLAITA_EXECUTION_STATE_TTL_DAYS", "3"),
        ("PLAITA_HISTORY_MAX_LEN", "300"),
        ("PLAITA_DOCUMENTED_KEYS", "none"),
    ],
)
def test_a_worker_says_under_which_limits_of_the_store_it_works(variable: str, value: str) -> None:
    usual = worker_options(load_settings({}), named=True).facts.setup
    changed = worker_options(load_settings({variable: value}), named=True).facts.setup
    [differs] = [name for name in usual if usual[name] != changed[name]]
    assert str(changed[differs]) == value
