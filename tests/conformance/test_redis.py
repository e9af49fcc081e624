"""The Redis store keeps every contract."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from plaita.backends.limits import Limits
from plaita.backends.redis import RedisBackend
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


class OnRedis:
    @pytest.fixture
    def clock(self) -> HandClock:
        return HandClock()

    @pytest_asyncio.fixture
    async def backend(self, clock: HandClock, redis_url: str) -> AsyncIterator[Backend]:
        store = RedisBackend(redis_url, clock)
        yield store
        await store.close()

    @pytest_asyncio.fixture
    async def capped(self, clock: HandClock, redis_url: str) -> AsyncIterator[Backend]:
        store = RedisBackend(redis_url, clock, cap=1, prefix="capped")
        yield store
        await store.close()

    @pytest_asyncio.fixture
    async def bounded(self, clock: HandClock, redis_url: str) -> AsyncIterator[Backend]:
        store = RedisBackend(redis_url, clock, limits=Limits(history_max=KEPT), prefix="bounded")
        yield store
        await store.close()


class TestRunCells(OnRedis, RunCells):
    pass


class TestWaitCells(OnRedis, WaitCells):
    pass


class TestAdopt(OnRedis, AdoptContract):
    pass


class TestClaim(OnRedis, ClaimContract):
    pass


class TestLease(OnRedis, LeaseContract):
    pass


class TestSettle(OnRedis, SettleContract):
    pass


class TestLife(OnRedis, LifeContract):
    pass


class TestQuota(OnRedis, QuotaContract):
    pass


class TestEvent(OnRedis, EventContract):
    pass


class TestFilter(OnRedis, FilterContract):
    pass


class TestChildren(OnRedis, ChildContract):
    pass


class TestInboxCells(OnRedis, InboxCells):
    pass


class TestInbox(OnRedis, InboxContract):
    pass


class TestResumeMessages(OnRedis, ResumeMessageContract):
    pass


class TestDeadLetters(OnRedis, DeadLetterContract):
    pass


class TestStartMessages(OnRedis, StartMessageContract):
    pass


class TestTask(OnRedis, TaskContract):
    pass


class TestFlow(OnRedis, FlowContract):
    pass


class TestUnused(OnRedis, UnusedContract):
    pass


class TestNeeded(OnRedis, NeededContract):
    pass


class TestQuery(OnRedis, QueryContract):
    pass


class TestProcess(OnRedis, ProcessContract):
    pass
