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
    """A closure is immutable: its hash covers the documents and the manifest."""

    async def put_closure(self, closure: str, document: bytes) -> None:
        """Store a closure under its hash; storing it again changes nothing."""

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
