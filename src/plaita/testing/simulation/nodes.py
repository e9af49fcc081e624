"""Nodes whose effect is an entry in the log of the world they run in."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Protocol, cast

from plaita.base.json import Json
from plaita.core.calls import NodeExecution
from plaita.node.basic import Node
from plaita.testing.loop import VirtualLoop

EFFECT, BLOCKING = "sim_effect", "sim_blocking"


class Outside(Protocol):
    """What is outside of the processes of one loop."""

    async def perform(self, execution: NodeExecution, given: Json) -> Json:
        """The effect, which may take its time."""

    def perform_at_once(self, execution: NodeExecution, given: Json) -> Json:
        """The effect of a node that blocks its thread."""


class WorldLoop(VirtualLoop):
    """A loop of a simulated process, which knows what is outside."""

    outside: Outside


def _outside() -> Outside:
    return cast(WorldLoop, asyncio.get_running_loop()).outside


class Effect(Node):
    """An asynchronous effect."""

    node_type: ClassVar[str] = EFFECT
    provides: ClassVar[frozenset[str] | None] = frozenset({"seen"})
    input: Any = None

    async def arun(self, execution: NodeExecution) -> Json:
        return await _outside().perform(execution, execution.evaluate(self.input))


class BlockingEffect(Node):
    """The same in a thread of the pool."""

    node_type: ClassVar[str] = BLOCKING
    provides: ClassVar[frozenset[str] | None] = frozenset({"seen"})
    input: Any = None

    def execute(self, execution: NodeExecution) -> Json:
        return _outside().perform_at_once(execution, execution.evaluate(self.input))
