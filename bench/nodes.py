"""Node types of the benchmarks; a module that workers import."""

from __future__ import annotations

import asyncio
import time
from typing import Any, ClassVar

from plaita import Node
from plaita.node.registry import get_default_registry

BUSY_S = 8.0


class Touch(Node):
    """An effect that costs nothing."""

    node_type: ClassVar[str] = "touch"
    times: ClassVar[list[float]] = []

    async def arun(self, execution: Any) -> dict[str, Any]:
        self.times.append(time.perf_counter())
        return {"ok": True, "n": 1, "key": "k", "text": "some text"}


class Mark(Node):
    """Says when it began, in seconds on the machine's monotonic clock."""

    node_type: ClassVar[str] = "mark"

    async def arun(self, execution: Any) -> float:
        return time.perf_counter()


class Busy(Node):
    """An effect that takes ``BUSY_S`` seconds."""

    node_type: ClassVar[str] = "busy"

    async def arun(self, execution: Any) -> None:
        await asyncio.sleep(BUSY_S)


for node in (Touch, Mark, Busy):
    get_default_registry().register(node)
