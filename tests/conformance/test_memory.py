"""The memory store keeps every contract."""

import pytest

from plaita.backends.limits import Limits
from plaita.backends.memory import MemoryBackend
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


class Memory:
    @pytest.fixture
    def clock(self) -> HandClock:
        return HandClock()

    @pytest.fixture
    def backend(self, clock: HandClock) -> Backend:
        return MemoryBackend(clock)

    @pytest.fixture
    def capped(self, clock: HandClock) -> Backend:
        return MemoryBackend(clock, cap=1)

    @pytest.fixture
    def bounded(self, clock: HandClock) -> Backend:
        return MemoryBackend(clock, limits=Limits(history_max=KEPT))


class TestRunCells(Memory, RunCells):
    pass


class TestWaitCells(Memory, WaitCells):
    pass


class TestAdopt(Memory, AdoptContract):
    pass


class TestClaim(Memory, ClaimContract):
    pass


class TestLease(Memory, LeaseContract):
    pass


class TestSettle(Memory, SettleContract):
    pass


class TestLife(Memory, LifeContract):
    pass


class TestQuota(Memory, QuotaContract):
    pass


class TestEvent(Memory, EventContract):
    pass


class TestFilter(Memory, FilterContract):
    pass


class TestChildren(Memory, ChildContract):
    pass


class TestInboxCells(Memory, InboxCells):
    pass


class TestInbox(Memory, InboxContract):
    pass


class TestResumeMessages(Memory, ResumeMessageContract):
    pass


class TestDeadLetters(Memory, DeadLetterContract):
    pass


class TestStartMessages(Memory, StartMessageContract):
    pass


class TestTask(Memory, TaskContract):
    pass


class TestFlow(Memory, FlowContract):
    pass


class TestUnused(Memory, UnusedContract):
    pass


class TestNeeded(Memory, NeededContract):
    pass


class TestQuery(Memory, QueryContract):
    pass


class TestProcess(Memory, ProcessContract):
    pass
