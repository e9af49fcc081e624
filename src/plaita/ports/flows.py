"""Definitions: closures by hash, published versions by flow id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FlowVersion:
    flow_id: str
    version: str
    closure: str
    published_ms: int


class FlowStore(Protocol):
    """A closure is immutable: its hash covers the documents and the manifest.

    It stays while a published version, a run or a promised child has it. ``prune`` removes one that nothing has and
    that was neither stored nor started with since the time it is given; one that was within the half hour before that
    stays as well: what it was stored for may be on its way.
    """

    async def put_closure(self, closure: str, document: bytes) -> None:
        """Store a closure under its hash. Storing it again changes nothing but when it was used last."""

    async def closure(self, closure: str) -> bytes | None:
        """The stored closure."""

    async def publish_flow(self, flow_id: str, version: str, closure: str) -> FlowVersion:
        """Make a closure the latest version of a flow. The same version with another closure replaces it."""

    async def flow(self, flow_id: str, version: str = "") -> FlowVersion | None:
        """One version, or the latest."""

    async def versions(self, flow_id: str) -> list[FlowVersion]:
        """Every version of a flow, the latest first."""

    async def flows(self) -> list[FlowVersion]:
        """The latest version of every flow, by id."""
