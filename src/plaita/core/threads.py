"""Threads for blocking nodes of plain runs. They are daemons: a call that never returns keeps no process alive."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Threads:
    """At most ``size`` calls at once; a thread ends when there is nothing to do."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._jobs: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Run in a thread as soon as one is free."""
        future: Future[T] = Future()
        with self._lock:
            self._jobs.append((future, work))
        self._start()
        return future

    def abandon(self, future: Future[Any]) -> None:
        """Nobody waits any more. A call that is already running is left behind, and another may take its place."""
        if not future.cancel() and not future.done():
            with self._lock:
                self._free += 1
            self._start()

    def _start(self) -> None:
        with self._lock:
            if not self._jobs or self._free < 1:
                return
            self._free -= 1
        threading.Thread(target=self._work, name="plaita-node", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._free += 1
                    return
                future, work = self._jobs.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as e:  # noqa: BLE001 - whoever asks for the result gets it
                    future.set_exception(e)
