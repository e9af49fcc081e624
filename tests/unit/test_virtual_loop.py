"""Real asyncio code in virtual time."""

import asyncio
import threading
from functools import partial

import pytest

from plaita.server.worker.pool import Pool
from plaita.testing.loop import LoopSpawner, Stuck, VirtualLoop


def test_a_day_of_waiting_takes_no_time_and_ends_at_its_end() -> None:
    loop = VirtualLoop()

    async def wait() -> float:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait()).cancel()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(86_400):
                    await asyncio.Event().wait()
        return loop.time()

    assert loop.run_until_complete(wait()) == 86_400


def test_timers_of_one_moment_run_in_the_order_they_were_set() -> None:
    loop = VirtualLoop()
    seen: list[str] = []
    for name in "abc":
        loop.call_at(5, seen.append, name)
    loop.call_at(1, seen.append, "first")
    loop.call_at(2, seen.append, "cancelled").cancel()
    loop.turn(5)
    assert seen == ["first", "a", "b", "c"]


def test_what_can_never_be_done_is_said_and_not_waited_for() -> None:
    loop = VirtualLoop()
    with pytest.raises(Stuck):
        loop.run_until_complete(loop.create_future())


def test_an_error_nobody_awaits_is_raised_where_the_loop_is_driven() -> None:
    loop = VirtualLoop()
    loop.call_soon([].pop)
    with pytest.raises(IndexError):
        loop.turn()


def test_work_of_threads_is_done_on_the_loop_one_job_after_another() -> None:
    loop = VirtualLoop()

    async def work() -> list[int]:
        pool = Pool(2, LoopSpawner())
        found = await asyncio.gather(*(pool.run(partial(abs, -n), lambda: None) for n in range(5)))
        found.append(await asyncio.to_thread(lambda: 7))
        pool.close()
        return found

    threads = threading.active_count()
    assert loop.run_until_complete(work()) == [0, 1, 2, 3, 4, 7]
    assert threading.active_count() == threads
