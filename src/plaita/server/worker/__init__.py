"""A worker: intake takes messages and claims, an attempt moves a run until it parks or ends, leases are renewed."""

from plaita.server.worker.options import Surroundings, WorkerOptions
from plaita.server.worker.worker import Worker

__all__ = ["Surroundings", "Worker", "WorkerOptions"]
