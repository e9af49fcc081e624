"""The event bus of the process. What a bus is, a layer above knows; it installs how to make one.

Imported with ``plaita`` itself, so what only an execution needs is imported when it asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Bus(Protocol):
    """What an execution needs of an event bus; both methods may be coroutines."""

    def register_subscription(self, *, event_type: str, **details: Any) -> Any:
        """Ask to be told of an event; the id of the subscription."""

    def unregister_subscription(self, subscription_id: str) -> Any:
        """Ask no more."""


_factories: list[Callable[[], Any]] = []


def install_bus_factory(make: Callable[[], Any]) -> None:
    """Say where the bus of the process comes from."""
    _factories[:] = [make]


def default_bus() -> Any:
    """The bus of the process, ``None`` when none is installed."""
    return _factories[0]() if _factories else None


def ask(answer: Any) -> Any:
    """The answer of a bus, awaited beside this thread when it is a coroutine."""
    import asyncio
    import inspect

    from plaita.core.drivers import private_loop

    if not inspect.isawaitable(answer):
        return answer

    async def waited() -> Any:
        return await answer

    return asyncio.run_coroutine_threadsafe(waited(), private_loop()).result()
