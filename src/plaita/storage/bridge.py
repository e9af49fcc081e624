"""Asking a store from synchronous code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, Self, TypeVar

from plaita.ports.backend import Backend

T = TypeVar("T")


class Bridge(Protocol):
    """Whatever has a store and the loop it lives on; a ``Runtime`` does."""

    def ask(self, question: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        """Ask in the loop of the store and wait for the answer."""

    def close(self) -> None:
        """Close the store."""


class OpenedStore:
    """A store on a loop thread of its own, until it is closed.

        with OpenedStore(lambda: SqliteBackend("orders.db")) as store:
            StoreExecutionStorage(store).load_execution_state("a1")

    ``open`` is called in that thread. Raises what it raises.
    """

    def __init__(self, open: Callable[[], Backend]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="plaita-storage", daemon=True)
        self._thread.start()
        try:
            self._store = self._sync(self._opened(open))
        except BaseException:
            self._stop()
            raise

    def ask(self, question: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        """Ask in the loop of the store and wait for the answer. Not to be called in that loop."""
        return self._sync(question(self._store))

    def close(self) -> None:
        """Close the store and end its thread; a second time it does nothing."""
        if self._thread.is_alive():
            self._sync(self._store.close())
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _opened(self, open: Callable[[], Backend]) -> Backend:
        return open()

    def _sync(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError("the store is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
