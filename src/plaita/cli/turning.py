"""The event loop of a command."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from plaita.base.errors import PlaitaError

T = TypeVar("T")

GRACE_S = 2.0
"""How long what the work left behind may take to end."""


def turn(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` in a loop of its own. What it leaves behind is cancelled, and does not keep the process.

    ``asyncio.run`` would wait for ever for a node that ignores its cancellation. An intentional error leaves the groups
    of tasks it was raised in: whoever reports it looks for it by its class.
    """
    runner = asyncio.Runner()
    try:
        return runner.run(work)
    except BaseExceptionGroup as group:
        leaves = list(_leaves(group))
        if len(leaves) > 1 and not all(isinstance(leaf, PlaitaError) for leaf in leaves):
            raise
        raise leaves[0] from None
    finally:
        loop = runner.get_loop()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        still = loop.run_until_complete(asyncio.wait(left, timeout=GRACE_S))[1] if left else ()
        if still:
            loop.set_exception_handler(lambda *_: None)
        else:
            runner.close()


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
