"""The event loop of a command."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

GRACE_S = 2.0
"""How long what the work left behind may take to end."""


def turn(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` in a loop of its own. What it leaves behind is cancelled, and does not keep the process.

    ``asyncio.run`` would wait for ever for a node that ignores its cancellation.
    """
    runner = asyncio.Runner()
    try:
        return runner.run(work)
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
