"""The SQLite store keeps every contract."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from plaita.backends.limits import Limits
from plaita.backends.sqlite import SqliteBackend
from plaita.ports.backend import Backend
from plaita.testing.conformance import (
    AdoptContract,
    ChildContract,
    ClaimContract,
    DeadLetterContract,
    EventContract,
    FilterContract,
    FlowContract,
    HandClock,
    InboxCells,
    InboxContract,
    LeaseContract,
    LifeContract,
    NeededContract,
    ProcessContract,
    QueryContract,
    QuotaContract,
    ResumeMessageContract,
    RunCells,
    SettleContract,
    StartMessageContract,
    TaskContract,
    UnusedContract,
    WaitCells,
)
from plaita.testing.conformance.queries import KEPT


class Sqlite:
    @pytest.fixture
    def clock(self) -> HandClock:
        return HandClock()

    @pytest_asyncio.fixture
    async def backend(self, clock: HandClock, tmp_path: Path) -> AsyncIterator[Backend]:
        store = SqliteBackend(tmp_path / "store.db", clock, synchronous="NORMAL")
        yield store
        await store.close()

    @pytest_asyncio.fixture
    async def capped(self, clock: HandClock, tmp_path: Path) -> AsyncIterator[Backend]:
        store = SqliteBackend(tmp_path / "capped.db", clock, cap=1, synchronous="NORMAL")
        yield store
        await store.close()

    @pytest_asyncio.fixture
    async def bounded(self, clock: HandClock, tmp_path: Path) -> AsyncIterator[Backend]:
        limits = Limits(history_max=KEPT)
        store = SqliteBackend(tmp_path / "bounded.db", clock, limits=limits, synchronous="NORMAL")
        yield store
        await store.close()


class TestRunCells(Sqlite, RunCells):
    pass


class TestWaitCells(Sqlite, WaitCells):
    pass


class TestAdopt(Sqlite, AdoptContract):
    pass


class TestClaim(Sqlite, ClaimContract):
    pass


class TestLease(Sqlite, LeaseContract):
    pass


class TestSettle(Sqlite, SettleContract):
    pass


class TestLife(Sqlite, LifeContract):
    pass


class TestQuota(Sqlite, QuotaContract):
    pass


class TestEvent(Sqlite, EventContract):
    pass


class TestFilter(Sqlite, FilterContract):
    pass


class TestChildren(Sqlite, ChildContract):
    pass


class TestInboxCells(Sqlite, InboxCells):
    pass


class TestInbox(Sqlite, InboxContract):
    pass


class TestResumeMessages(Sqlite, ResumeMessageContract):
    pass


class TestDeadLetters(Sqlite, DeadLetterContract):
    pass


class TestStartMessages(Sqlite, StartMessageContract):
    pass


class TestTask(Sqlite, TaskContract):
    pass


class TestFlow(Sqlite, FlowContract):
    pass


class TestUnused(Sqlite, UnusedContract):
    pass


class TestNeeded(Sqlite, NeededContract):
    pass


class TestQuery(Sqlite, QueryContract):
    pass


class TestProcess(Sqlite, ProcessContract):
    pass
