"""What doctor finds in a store that works, and what it says when something is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from plaita.backends.limits import Limits
from plaita.backends.memory import MemoryBackend
from plaita.backends.sqlite import SqliteBackend
from plaita.base.clock import SystemClock
from plaita.policy.lease import plan_lease
from plaita.ports.backend import Finding
from plaita.ports.processes import Facts, Process
from plaita.runtime.checking import LATE_S, check
from plaita.settings import Settings
from plaita.testing.conformance.stage import start

SETTINGS = Settings()


@pytest.fixture
async def store() -> AsyncIterator[MemoryBackend]:
    yield MemoryBackend()


async def findings(store: Any, name: str) -> list[Finding]:
    return [finding for finding in await check(store, SETTINGS) if finding.name == name]


def worker(name: str, **setup: Any) -> Process:
    return Process(name, 1, ("default",), None, (), 0, Facts(name, setup=setup))


async def test_a_claim_of_a_process_that_is_not_there_is_named_until_somebody_is(store: MemoryBackend) -> None:
    await store.submit(start("r1"))
    await store.claim("gone.nonce", 1)
    [lost] = await findings(store, "claims")
    await store.announce(worker("gone"))
    [found] = await findings(store, "claims")
    assert (lost.status, found.status) == ("warning", "ok")
    assert lost.message == "1 executions are held by 1 processes that are not there"


async def test_processes_of_one_name_are_told_of(store: MemoryBackend) -> None:
    for holder, name in (("h1", "a"), ("h2", "a"), ("h3", "b"), ("h4", ""), ("h5", "")):
        await store.announce(Process(holder, 1, ("default",), None, (), 0, Facts(name)))
    _, found = await findings(store, "processes")
    assert (found.status, found.message) == (
        "warning", "2 processes are called a: a command for one of them reaches them all",
    )  # fmt: skip


async def test_workers_that_do_not_agree_are_named_with_what_they_say(store: MemoryBackend) -> None:
    await store.announce(worker("a", lease_ttl_seconds=10.0, version="1"))
    await store.announce(worker("b", lease_ttl_seconds=20.0, version="1"))
    [found] = await findings(store, "agreement")
    assert found.message == "the workers do not agree on lease_ttl_seconds: 10.0 (a); 20.0 (b)"


async def test_workers_that_agree_and_programs_that_say_nothing_are_no_finding(store: MemoryBackend) -> None:
    for process in (worker("a", version="1"), worker("b", version="1"), Process("c", 1, (), None, (), 0)):
        await store.announce(process)
    assert await findings(store, "agreement") == []


async def test_dead_letters_and_messages_that_wait_for_long_are_worth_a_look() -> None:
    class Late(SystemClock):
        ahead_ms = 0

        def now_ms(self) -> int:
            return super().now_ms() + self.ahead_ms

    clock = Late()
    store = MemoryBackend(clock, limits=Limits(lease=plan_lease(10_000)))
    await store.offer("m1", b"no message")
    await store.accept(1)
    await store.offer("m2", b"{}")
    early = await findings(store, "messages")
    clock.ahead_ms = (LATE_S + 5) * 1_000
    late, dead = await findings(store, "messages"), await findings(store, "dead letters")
    assert [f.status for f in (*early, *late, *dead)] == ["ok", "warning", "warning"]
    assert dead[0].message.startswith("1 dead letters")


async def test_a_difference_that_is_gone_at_the_second_look_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(MemoryBackend):
        looks: list[list[str]] = [["run 1 passes", "run 2 stays"], ["run 2 stays"]]

        async def audit(self) -> list[str]:
            return self.looks.pop(0)

    [found] = await findings(Busy(), "consistency")
    assert (found.status, found.message) == ("failed", "1 differences: run 2 stays")


@pytest.mark.parametrize(("synchronous", "status"), [("FULL", "ok"), ("NORMAL", "warning")])
async def test_a_file_says_what_it_survives_and_that_it_is_sound(tmp_path: Path, synchronous: Any, status: str) -> None:
    store = SqliteBackend(tmp_path / "s.db", synchronous=synchronous)
    found = {finding.name: finding for finding in await check(store, SETTINGS)}
    await store.close()
    assert found["durability"].status == status
    assert (found["file"].status, found["latency"].status) == ("ok", "ok")
    assert "free beside the store" in found["disk"].message


async def test_what_nobody_takes_is_told_with_a_worker_of_its_queue(store: MemoryBackend) -> None:
    await store.submit(start("r1", queue="people"))
    await store.announce(worker("a"))
    [left] = await findings(store, "executions")
    assert (left.status, left.hint) == ("warning", "plaita wait r1 or plaita worker --queues people")


async def test_processes_are_counted_in_words(store: MemoryBackend) -> None:
    told = []
    for name in ("a", "b"):
        await store.announce(worker(name))
        told += [finding.message for finding in await findings(store, "processes")]
    assert told == [
        "1 process drives executions: a (default)",
        "2 processes drive executions: a (default); b (default)",
    ]
