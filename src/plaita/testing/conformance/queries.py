"""What every ``QueryStore`` and ``ProcessRegistry`` must do."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from plaita.base.json import decode
from plaita.ports.backend import Backend
from plaita.ports.processes import Facts, Process
from plaita.ports.queries import Counts
from plaita.ports.runs import End, Park
from plaita.ports.values import STATUSES, RunId
from plaita.testing.conformance.stage import RUN, Contract, HandClock, Stage, hand, listen, start

PATIENCE_S = 5
KEPT = 3


class QueryContract(Contract):
    """What operators see. ``bounded``: a store whose histories need only keep the newest ``KEPT`` entries."""

    @pytest.fixture
    def forgetful(self, bounded: Backend, clock: HandClock) -> Stage:
        return Stage(bounded, clock)

    async def test_an_empty_store_has_nothing_of_anything(self, stage: Stage) -> None:
        counts = await stage.backend.counts()
        assert counts == Counts(dict.fromkeys(STATUSES, 0), 0, None, 0, 0, None, 0)

    async def test_runs_are_counted_by_status_and_what_is_due_has_an_age(self, stage: Stage) -> None:
        await stage.hold("held")
        await stage.backend.submit(start("due", priority=3))
        since_ms = stage.clock.now_ms()
        await stage.pass_time(50)
        await stage.backend.submit(start("later", not_before_ms=stage.clock.now_ms() + 1_000))
        await stage.backend.submit(start("cancelled"))
        await stage.backend.cancel(RunId("cancelled"))
        counts = await stage.backend.counts()
        assert {status: n for status, n in counts.by_status.items() if n} == {
            "running": 1, "queued": 2, "cancelled": 1,
        }  # fmt: skip
        assert (counts.due, counts.due_since_ms) == (1, since_ms)

    async def test_messages_count_until_they_are_accepted_or_dead(self, stage: Stage) -> None:
        await stage.backend.offer("m1", b"no message")
        waiting = await stage.backend.counts()
        await stage.backend.accept(10)
        accepted = await stage.backend.counts()
        assert (waiting.inbox, waiting.dead_letters, waiting.inbox_since_ms is None) == (1, 0, False)
        assert (accepted.inbox, accepted.dead_letters, accepted.inbox_since_ms) == (0, 1, None)

    async def test_runs_are_listed_newest_first_page_by_page(self, stage: Stage) -> None:
        for number in range(5):
            await stage.backend.submit(start(f"r{number}"))
        names, cursor = [], ""
        for _ in range(3):
            page, cursor = await stage.backend.runs(limit=2, cursor=cursor)
            names.append([r.run_id for r in page])
        assert (names, cursor) == ([["r4", "r3"], ["r2", "r1"], ["r0"]], "")

    async def test_runs_are_listed_oldest_first_when_asked(self, stage: Stage) -> None:
        for number in range(5):
            await stage.backend.submit(start(f"r{number}"))
        names, cursor = [], ""
        for _ in range(3):
            page, cursor = await stage.backend.runs(limit=2, cursor=cursor, oldest_first=True)
            names.append([r.run_id for r in page])
        assert (names, cursor) == ([["r0", "r1"], ["r2", "r3"], ["r4"]], "")

    async def test_filters_join(self, stage: Stage) -> None:
        await stage.backend.submit(start("a", business_key="order-1", tags=("vip", "eu"), tenant="acme"))
        await stage.backend.submit(start("b", business_key="order-1", tags=("eu",)))
        await stage.settle(await stage.hold("c", tags=("vip",)), End("completed", b"1"))

        async def found(**wanted: str) -> list[str]:
            runs, _ = await stage.backend.runs(**wanted)  # type: ignore[arg-type]
            return [r.run_id for r in runs]

        assert await found(business_key="order-1") == ["b", "a"]
        assert await found(tag="vip") == ["c", "a"]
        assert await found(tag="eu", tenant="acme") == ["a"]
        assert await found(status="completed") == ["c"]
        assert await found(flow_id="flow", status="queued") == ["b", "a"]
        assert await found(flow_id="none") == []

    async def test_a_view_tells_the_whole_story(self, stage: Stage) -> None:
        claim = await stage.hold(business_key="k", tags=("t",), priority=3, imports=("m",))
        await stage.settle(claim, End("completed", b'{"a":1}'))
        view = await stage.backend.run(RUN)
        assert view is not None
        assert (view.business_key, view.tags, view.priority, view.imports) == ("k", ("t",), 3, ("m",))
        assert (view.output, view.ended_ms, view.seq, view.slot) == (b'{"a":1}', stage.clock.now_ms(), 1, False)

    async def test_times_are_exact_however_late(self, stage: Stage) -> None:
        late = 2_000_000_000_000_001
        await stage.backend.submit(start("later", not_before_ms=late))
        arm = replace(listen(), deadline_ms=late + 2)
        await stage.settle(await stage.hold(), Park(late + 1, late + 1), arms=(arm,))
        views = {view.run_id: view for view in (await stage.backend.runs())[0]}
        later, waiting = views[RunId("later")], views[RUN]
        [wait] = await stage.backend.waits(RUN)
        times = (later.not_before_ms, later.due_ms, waiting.due_ms, waiting.retry_ms, wait.deadline_ms)
        assert times == (late, late, late + 1, late + 1, late + 2)
        assert {type(time) for time in times} == {int}
        assert await stage.backend.audit() == []

    async def test_waits_are_listed_in_the_order_they_were_armed(self, stage: Stage) -> None:
        await stage.settle(await stage.hold(), Park(None), arms=(listen("z"), hand("a"), listen("m", key=None)))
        waits = await stage.backend.waits(RUN)
        assert [(w.wait_id, w.kind, w.key) for w in waits] == [
            ("z", "event", "k"),
            ("a", "hand", None),
            ("m", "event", None),
        ]

    async def test_the_entries_of_one_settle_are_numbered_and_paged_one_by_one(self, stage: Stage) -> None:
        claim = await stage.hold()
        told = [b'{"n":1}', b'{"n": 2,\n "t": "a\\nb"}', b'{"n":3}', b'{"n":4}']
        claim = await stage.keep(claim, history=tuple(told[:3]))
        await stage.keep(claim, history=tuple(told[3:]))
        entries = await stage.backend.history(RUN)
        assert [e.seq for e in entries] == list(range(1, len(entries) + 1))
        assert [decode(e.data) for e in entries[-4:]] == [decode(data) for data in told]
        first = entries[-4].seq
        paged = await stage.backend.history(RUN, after=first, limit=2)
        assert [e.seq for e in paged] == [first + 1, first + 2]

    async def test_a_bounded_history_keeps_its_newest_entries_under_their_numbers(self, forgetful: Stage) -> None:
        claim = await forgetful.hold()
        told = [b'{"n":%d}' % n for n in range(6)]
        claim = await forgetful.keep(claim, history=tuple(told[:4]))
        before = len(told[:4]) + 2
        assert [e.seq for e in await forgetful.backend.history(RUN, after=before - 1)] == [before]
        await forgetful.keep(claim, history=tuple(told[4:]))
        kept = await forgetful.backend.history(RUN)
        assert [e.data for e in kept[-KEPT:]] == told[-KEPT:]
        assert [e.seq for e in kept] == list(range(kept[0].seq, before + 3))
        assert await forgetful.backend.history(RUN, after=before, limit=1) == kept[-2:-1]
        assert await forgetful.backend.history(RUN, after=before + 2) == []

    async def test_what_is_not_there_is_answered_with_nothing(self, stage: Stage) -> None:
        unknown = RunId("unknown")
        assert await stage.backend.run(unknown) is None
        assert await stage.backend.waits(unknown) == []
        assert await stage.backend.history(unknown) == []
        assert await stage.backend.frames(unknown) == {}

    async def test_the_clock_is_the_stores(self, stage: Stage) -> None:
        assert await stage.backend.now_ms() == stage.clock.now_ms()

    async def test_a_hint_returns_when_something_became_due(self, stage: Stage) -> None:
        await stage.backend.hint(0)
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            hint = group.create_task(stage.backend.hint(600_000))
            await stage.backend.submit(start())
            await hint

    async def test_a_hint_returns_when_a_dead_holder_is_released(self, stage: Stage) -> None:
        claim = await stage.hold()
        await stage.backend.hint(0)
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            hint = group.create_task(stage.backend.hint(600_000))
            await asyncio.sleep(0)
            await stage.backend.release(claim.token.nonce.rpartition(".")[0])
            await hint

    async def test_a_hint_returns_after_its_time_at_the_latest(self, stage: Stage) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await stage.backend.hint(1)


class ProcessContract(Contract):
    """Who is alive."""

    async def test_a_process_is_alive_from_announcing_to_withdrawing(self, stage: Stage) -> None:
        one = Process("one", 1, ("default", "slow"), None, ("app",), 5)
        two = Process("two", 2, (), RunId("r"), (), 6)
        await stage.backend.announce(one)
        await stage.backend.announce(two)
        assert await stage.backend.living() == [one, two]
        assert await stage.backend.bury_dead() == 0
        await stage.backend.withdraw("one")
        assert await stage.backend.living() == [two]

    async def test_a_process_that_announces_itself_again_stands_once_with_what_it_said_last(self, stage: Stage) -> None:
        first = Process("one", 1, ("default",), None, (), 5, Facts("i1", "host", "starting", 4))
        other = Process("two", 2, (), None, (), 6)
        again = replace(first, facts=Facts("i1", "host", "draining", 4, active=2, setup={"lease_ms": 10_000}))
        for process in (first, other, again):
            await stage.backend.announce(process)
        assert await stage.backend.living() == [again, other]

    async def test_leaving_ends_the_leases_at_once(self, stage: Stage) -> None:
        await stage.backend.announce(Process("one", 1, ("default",), None, (), 5))
        await stage.backend.submit(start())
        [claim] = await stage.backend.claim("one.n", 1)
        await stage.backend.withdraw("one")
        [again] = await stage.take()
        assert again.token.generation == claim.token.generation + 1
