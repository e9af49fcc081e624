"""The reconciler of events under its documented path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plaita.base.moved import from_homes

if TYPE_CHECKING:
    from plaita.server.documented.filtering import CURSOR_TTL_SECONDS, EventReconciler

__all__ = ["CURSOR_TTL_SECONDS", "EventReconciler"]

__getattr__: Any = from_homes(
    "plaita.server.event_reconcile", {"plaita.server.documented.filtering": ("EventReconciler", "CURSOR_TTL_SECONDS")}
)
