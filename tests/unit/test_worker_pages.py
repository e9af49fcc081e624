"""What a worker shows over HTTP: a page of metrics that readers of the format understand, and whether it is healthy."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from plaita import Flow
from plaita.backends.memory import MemoryBackend
from plaita.base.clock import SystemClock
from plaita.base.errors import InputError, NotSupported, Unavailable
from plaita.control.starting import publish
from plaita.ports.processes import Facts
from plaita.runtime import working
from plaita.server.worker import Surroundings, Worker, WorkerOptions
from plaita.server.worker.endpoint import Endpoint, Page
from plaita.server.worker.measuring import Measures, Streams
from plaita.settings import load_settings
from plaita.telemetry import EVENTS, LogTelemetry, events
from plaita.telemetry.exposition import exposition
from plaita.telemetry.gauges import GAUGES
from plaita.telemetry.numbers import LABELS_MAX, OTHER

STREAMS = Streams("flow:queue", "group", 1_000, 60_000, 5)
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(page: str) -> Samples:
    """Every sample of a page, as a foreign reader sees it."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


class Lost(MemoryBackend):
    """A store that can be away."""

    is_away = False

    async def now_ms(self) -> int:
        if self.is_away:
            raise Unavailable("the store is away")
        return await super().now_ms()


class Shift:
    """A worker at work, and its pages."""

    def __init__(self) -> None:
        self.store, self.telemetry, self.stop = Lost(), LogTelemetry(), asyncio.Event()
        options = WorkerOptions(poll_ms=10, facts=Facts("w-1", "host"), concurrency=7)
        around = Surroundings(telemetry=self.telemetry, ready=lambda: self.ready.set())
        self.ready = asyncio.Event()
        self.worker = Worker(self.store, options, around)
        self.measures = Measures(
            self.worker.presence, self.store, SystemClock(), self.telemetry.readings, lambda: 3, STREAMS
        )  # fmt: skip
        self.working: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        self.working = asyncio.create_task(self.worker.run(self.stop))
        await self.ready.wait()

    async def end(self) -> None:
        self.stop.set()
        if self.working is not None:
            await self.working

    async def health(self) -> tuple[int, str]:
        page = await self.measures.health()
        return page.status, json.loads(page.body)["status"]


@pytest.fixture
async def shift() -> AsyncIterator[Shift]:
    found = Shift()
    yield found
    await found.end()


async def test_a_worker_is_healthy_exactly_while_it_takes_executions(shift: Shift) -> None:
    before = await shift.health()
    await shift.begin()
    during = await shift.health()
    await shift.end()
    after = await shift.health()
    assert [before, during, after] == [(503, "starting"), (200, "ready"), (503, "stopped")]


async def test_a_worker_whose_store_is_away_is_not_healthy_and_still_shows_its_own_numbers(shift: Shift) -> None:
    await shift.begin()
    shift.store.is_away = True
    health, page = await shift.health(), read((await shift.measures.metrics()).body)
    assert health == (503, "store unreachable")
    assert page["plaita_store_up", ()] == 0
    assert page["plaita_worker_up", (("instance", "w-1"),)] == 1
    assert not any(name == "plaita_runs_due" for name, _ in page)


async def test_the_page_shows_what_was_done_and_what_there_is(shift: Shift) -> None:
    nodes: list[dict[str, Any]] = [{"type": "start", "id": "s", "next": "e"}, {"type": "end", "id": "e", "output": "1"}]
    published = await publish(shift.store, Flow.model_validate({"flow_id": "f", "nodes": nodes}))
    assert published is not None
    await shift.store.offer("m1", json.dumps({"type": "start", "execution_id": "r", "flow_id": "f"}).encode())
    await shift.store.offer("m2", b"no message")
    await shift.begin()
    while (await shift.store.counts()).by_status["completed"] == 0:
        await shift.worker.changed(10)
    page = read((await shift.measures.metrics()).body)
    wanted: Samples = {
        ("plaita_runs_ended_total", (("status", "completed"),)): 1,
        ("plaita_runs_claimed_total", ()): 1,
        ("plaita_takeovers_total", ()): 0,
        ("plaita_settle_seconds_count", ()): 1,
        ("plaita_queue_acked_total", ()): 2,
        ("plaita_queue_dead_lettered_total", ()): 1,
        ("plaita_messages_refused_total", ()): 1,
        ("plaita_runs", (("status", "completed"),)): 1,
        ("plaita_runs_due", ()): 0,
        ("plaita_workers", ()): 1,
        ("plaita_queue_dlq_length", (("group", "group"), ("stream", "flow:queue"))): 1,
        ("plaita_worker_capacity_concurrency", (("instance", "w-1"),)): 7,
        ("plaita_alert_webhook_pending", ()): 3,
    }
    assert {key: page.get(key) for key in wanted} == wanted


async def test_every_declared_number_is_on_the_page(shift: Shift) -> None:
    await shift.begin()
    text = (await shift.measures.metrics()).body
    heads = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    counted = {
        e.metric.name if e.metric.kind == "histogram" else f"{e.metric.name}_total" for e in EVENTS.values() if e.metric
    }
    documented = {e.metric.documented for e in EVENTS.values() if e.metric and e.metric.documented}
    assert heads == counted | documented | GAUGES.keys()


def test_a_histogram_counts_upwards_and_keeps_its_sum() -> None:
    telemetry = LogTelemetry()
    for seconds in (0.001, 0.02, 0.02, 99.0):
        telemetry.emit(events.STEP_SETTLED, run_id="r", seq=1, seconds=seconds)
    page = read(exposition(telemetry.readings(), [])[0])
    bounds = {key[1][0][1]: value for key, value in page.items() if key[0] == "plaita_settle_seconds_bucket"}
    assert (bounds["0.001"], bounds["0.01"], bounds["0.025"], bounds["60"], bounds["+Inf"]) == (1, 1, 3, 3, 4)
    assert page["plaita_settle_seconds_sum", ()] == pytest.approx(99.041)


def test_labels_are_escaped_and_bounded() -> None:
    telemetry = LogTelemetry()
    telemetry.emit(events.CALL_RETURNED, type='a "b"\\\n', seconds=1.0)
    for number in range(LABELS_MAX + 5):
        telemetry.emit(events.CALL_RETURNED, type=f"t{number}", seconds=1.0)
    page = read(exposition(telemetry.readings(), [])[0])
    counts = {key[1][0][1]: value for key, value in page.items() if key[0] == "plaita_call_seconds_count"}
    assert counts['a "b"\\\n'] == 1
    assert (len(counts), counts[OTHER]) == (LABELS_MAX + 1, 6)


async def test_a_port_without_the_package_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    settings = load_settings({"PLAITA_METRICS_PORT": "9464", "PLAITA_STORE": "sqlite:///never-opened.db"})
    with pytest.raises(NotSupported, match=r"prometheus-client .*--metrics-port") as caught:
        await working.work(settings, working.Shift(), asyncio.Event())
    assert caught.value.hint == "pip install 'plaita[metrics]'"


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async def hello() -> Page:
        return Page(200, "hällo\n")

    found = Endpoint("127.0.0.1", 0, {"/hello": hello})
    await found.open()
    yield found
    await found.close()


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/hello", 200, "hällo\n"),
        ("GET", "/hello?a=b", 200, "hällo\n"),
        ("HEAD", "/hello", 200, ""),
        ("GET", "/", 404, "there are only /hello\n"),
        ("POST", "/hello", 405, "only GET is answered\n"),
    ],
)
async def test_known_paths_are_answered(endpoint: Endpoint, method: str, path: str, status: int, body: str) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.request(method, f"http://127.0.0.1:{endpoint.port}{path}")
    assert (answer.status_code, answer.text) == (status, body)


@pytest.mark.parametrize("sent", [b"", b"\r\n\r\n", b"x" * 40_000, b"\xff\xfe\r\n\r\n"])
async def test_who_speaks_no_http_does_not_disturb_the_next_one(endpoint: Endpoint, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
    writer.write(sent)
    writer.write_eof()
    with suppress(OSError):
        await reader.read()
    writer.close()
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{endpoint.port}/hello")
    assert answer.status_code == 200


async def test_a_taken_port_is_named(endpoint: Endpoint) -> None:
    with pytest.raises(InputError, match=f"PLAITA_METRICS_PORT.*127.0.0.1:{endpoint.port} cannot be listened on"):
        await Endpoint("127.0.0.1", endpoint.port, {}).open()
