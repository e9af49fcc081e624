"""A worker: intake takes messages and claims, an attempt moves a run until it parks or ends, leases are renewed."""

from plaita.server.worker.worker import Worker, WorkerOptions

__all__ = ["Worker", "WorkerOptions"]
