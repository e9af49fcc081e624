"""What another installation of the published system keeps on the same server: rows of executions, and flows."""

from __future__ import annotations

from typing import Protocol


class PublishedFlows(Protocol):
    """Definitions by their documented keys."""

    async def flow_names(self, tenant: str) -> list[str]:
        """Ids of flows, in order."""

    async def flow_versions(self, tenant: str, flow_id: str) -> list[str]:
        """Versions of a flow, the one that counts as the latest at the end."""

    async def flow_document(self, tenant: str, flow_id: str, version: str) -> bytes | None:
        """A definition as it was written, JSON bytes; without a version the latest."""


class PublishedRows(PublishedFlows, Protocol):
    """Rows by their documented index."""

    async def tenants(self) -> list[str]:
        """Tenants that have executions."""

    async def page(self, tenant: str, cursor: str = "") -> tuple[list[str], str]:
        """Some ids of the index, and the cursor of the next page or an empty text."""

    async def row(self, tenant: str, execution_id: str) -> bytes | None:
        """A row, JSON bytes."""

    async def lease(self, tenant: str, execution_id: str) -> str:
        """Who holds an execution there; empty for nobody."""
