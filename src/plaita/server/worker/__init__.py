"""A worker: intake claims, an attempt moves one run from claim to park or end, leases are renewed beside it."""

from plaita.server.worker.worker import Worker, WorkerOptions

__all__ = ["Worker", "WorkerOptions"]
