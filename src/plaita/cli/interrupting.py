"""Ctrl-C and SIGTERM: the first one is a question or a request, the second one quits."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from types import TracebackType
from typing import Self

from plaita.cli.failing import INTERRUPTED
from plaita.cli.screen import note


class Interrupts:
    """Listens while a command moves an execution. ``pressed`` is set by Ctrl-C, ``asked_to_end`` by SIGTERM."""

    def __init__(self) -> None:
        self.pressed, self.asked_to_end = asyncio.Event(), asyncio.Event()

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._press)
        loop.add_signal_handler(signal.SIGTERM, self._end)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)

    def _press(self) -> None:
        _set_or_quit(self.pressed)

    def _end(self) -> None:
        _set_or_quit(self.asked_to_end)


def _set_or_quit(asked: asyncio.Event) -> None:
    """Asked once more for the same, the process ends now: a node that runs for long is not waited for."""
    if asked.is_set():
        note("quit; what was begun can be continued")
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    asked.set()


async def ask(question: str) -> str:
    """One line from the terminal, without blocking the loop; empty at the end of the input."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        if not answer.done():
            answer.set_result(sys.stdin.readline().strip().lower())

    sys.stderr.write(question)
    sys.stderr.flush()
    loop.add_reader(sys.stdin.fileno(), read)
    try:
        return await answer
    finally:
        loop.remove_reader(sys.stdin.fileno())
