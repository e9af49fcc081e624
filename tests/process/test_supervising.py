"""The process above several workers, with children that only say what the test lets them say."""

from __future__ import annotations

import asyncio
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from plaita.base.errors import CrashLoop, InputError, NotSupported
from plaita.runtime.supervising import ORDERS, Supervisor
from plaita.runtime.working import Shift
from plaita.settings import Settings
from plaita.telemetry import LogTelemetry
from tests.servers import free_port

UNREACHABLE = 5
CHILD = """
import os, signal, socket, sys
line = socket.socket(fileno=os.dup(0))
file = line.makefile("rb")
orders = file.readline()
with open({seen!r}, "ab") as seen:
    seen.write(orders)
{act}
"""
READY = "line.send(b'ready\\n')"
UNTIL_TOLD = "file.read()"


class Crew:
    """A supervisor of children with a part to play."""

    def __init__(self, folder: Path, act: str, *, processes: int = 1, metrics_port: int = 0) -> None:
        self.seen = folder / "orders"
        settings = Settings()
        store = replace(settings.store, url=f"sqlite:///{folder / 's.db'}")
        worker = replace(
            settings.worker, processes=processes, metrics_port=metrics_port, instance_id="unit", drain_timeout_seconds=0
        )
        self.settings = replace(settings, store=store, worker=worker)
        self.telemetry, self.stop = LogTelemetry(), asyncio.Event()
        command = (sys.executable, "-I", "-c", CHILD.format(seen=str(self.seen), act=act))
        passing = frozenset({UNREACHABLE})
        self.supervisor = Supervisor(self.settings, Shift(("a", "b"), 7), command, self.telemetry, "INFO", passing)

    @property
    def orders(self) -> list[bytes]:
        """What children were told so far."""
        return self.seen.read_bytes().splitlines() if self.seen.exists() else []

    async def told(self, count: int) -> None:
        """Wait for so many children to have been told."""
        nobody = asyncio.Event()
        while len(self.orders) < count:
            try:
                await asyncio.wait_for(nobody.wait(), 0.01)
            except TimeoutError:
                continue

    async def run(self) -> None:
        await self.supervisor.run(self.stop)

    def died(self) -> float:
        return self.telemetry.numbers()["plaita_children_died"]


async def test_each_child_has_a_name_a_port_and_a_holder_of_its_own(tmp_path: Path) -> None:
    port = free_port(2)
    crew = Crew(tmp_path, f"{READY}; {UNTIL_TOLD}", processes=2, metrics_port=port)
    running = asyncio.create_task(crew.run())
    await crew.told(2)
    crew.stop.set()
    await running
    orders = [ORDERS.validate_json(line) for line in crew.orders]
    own = {(o.settings.worker.instance_id, o.settings.worker.metrics_port) for o in orders}
    assert own == {("unit-0", port), ("unit-1", port + 1)}
    assert len({o.shift.holder for o in orders}) == 2
    assert {(o.shift.queues, o.shift.concurrency, o.settings.store.url) for o in orders} == {
        (("a", "b"), 7, crew.settings.store.url)
    }
    assert crew.died() == 0


async def test_a_port_that_is_taken_is_refused_before_there_is_a_child(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        crew = Crew(tmp_path, f"{READY}; {UNTIL_TOLD}", processes=2, metrics_port=port - 1)
        with pytest.raises(InputError, match=f"PLAITA_METRICS_PORT: .*:{port} cannot be listened on"):
            await crew.run()
    assert crew.orders == []


async def test_a_child_that_dies_after_it_was_ready_is_replaced_however_often(tmp_path: Path) -> None:
    crew = Crew(tmp_path, f"{READY}; os.kill(os.getpid(), signal.SIGKILL)")
    running = asyncio.create_task(crew.run())
    await crew.told(4)
    crew.stop.set()
    await running
    assert crew.died() >= 3


async def test_children_that_die_before_they_are_ready_end_it_after_three(tmp_path: Path) -> None:
    crew = Crew(tmp_path, "sys.exit(3)")
    with pytest.raises(CrashLoop, match="3 worker processes in a row ended before they took anything: exit code 3"):
        await crew.run()
    assert len(crew.orders) == 3


async def test_children_that_cannot_reach_the_store_are_tried_again_and_again(tmp_path: Path) -> None:
    crew = Crew(tmp_path, f"sys.exit({UNREACHABLE})")
    running = asyncio.create_task(crew.run())
    await crew.told(4)
    crew.stop.set()
    await running
    assert crew.died() >= 3


async def test_children_that_leave_in_order_are_not_replaced(tmp_path: Path) -> None:
    crew = Crew(tmp_path, f"{READY}; sys.exit(0)", processes=2)
    await crew.run()
    assert (len(crew.orders), crew.died()) == (2, 0)


async def test_a_child_that_will_not_end_is_killed_by_the_second_word(tmp_path: Path) -> None:
    ready = f"{READY}; signal.pause()"
    crew = Crew(tmp_path, ready)
    running = asyncio.create_task(crew.run())
    await crew.told(1)
    crew.stop.set()
    crew.supervisor.cut()
    await asyncio.wait_for(running, 10)
    assert crew.died() == 1


async def test_a_program_that_cannot_be_started_is_reported_and_tried_again(tmp_path: Path) -> None:
    crew = Crew(tmp_path, "")
    crew.supervisor.command = (str(tmp_path / "nothing"),)
    running = asyncio.create_task(crew.run())
    nobody = asyncio.Event()
    while crew.telemetry.numbers()["plaita_children_not_started"] == 0:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(nobody.wait(), 0.01)
    crew.stop.set()
    await asyncio.wait_for(running, 10)


async def test_a_store_in_memory_is_refused(tmp_path: Path) -> None:
    crew = Crew(tmp_path, "")
    crew.supervisor.settings = replace(crew.settings, store=replace(crew.settings.store, url="memory:"))
    with pytest.raises(NotSupported, match="cannot share the store memory:"):
        await crew.run()
