"""What is read when somebody looks, instead of counted when it happens: each gauge once, with its sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Source = Literal["worker", "store"]


@dataclass(frozen=True, slots=True)
class Gauge:
    """``source``: the process itself, or the store, where every process of it gives the same answer."""

    name: str
    sentence: str
    labels: tuple[str, ...]
    source: Source


GAUGES: Final[dict[str, Gauge]] = {}
"""All gauges by name, in the order of the reference page."""


def declare_gauge(name: str, source: Source, sentence: str, *labels: str) -> Gauge:
    """Enter a gauge into the table."""
    if name in GAUGES:
        raise ValueError(f"gauge {name!r} is declared twice")
    GAUGES[name] = Gauge(name, sentence, labels, source)
    return GAUGES[name]


_INSTANCE: Final = "instance"
_STREAM: Final = ("stream", "group")

UP: Final = declare_gauge("plaita_worker_up", "worker", "1 while the worker takes executions.", _INSTANCE)
ACTIVE: Final = declare_gauge("plaita_worker_active_tasks", "worker", "Executions it holds.", _INSTANCE)
DRAINING: Final = declare_gauge(
    "plaita_worker_draining", "worker", "1 while it takes nothing new and lets its executions go.", _INSTANCE
)
REGISTERED: Final = declare_gauge(
    "plaita_worker_registered", "worker", "1 while the registry lists it. Only on Redis.", _INSTANCE
)
HEARTBEAT: Final = declare_gauge(
    "plaita_worker_heartbeat_timestamp_seconds", "worker", "When it said last that it is there; seconds since 1970.",
    _INSTANCE,
)  # fmt: skip
CAPACITY: Final = declare_gauge(
    "plaita_worker_capacity_concurrency", "worker", "Executions it advances at the same time at most.", _INSTANCE
)
CAPACITY_ACTIVE: Final = declare_gauge(
    "plaita_worker_capacity_active_tasks", "worker", "The documented twin of `plaita_worker_active_tasks`.", _INSTANCE
)
ALERTS_PENDING: Final = declare_gauge(
    "plaita_alert_webhook_pending", "worker", "Dead letters that are still to be posted to the webhook."
)
STORE_UP: Final = declare_gauge("plaita_store_up", "worker", "1 when the store answered this very question.")
RUNS: Final = declare_gauge("plaita_runs", "store", "Executions, ended ones within their retention.", "status")
RUNS_DUE: Final = declare_gauge(
    "plaita_runs_due", "store", "The backlog: executions with something to do now that nobody holds."
)
DUE_AGE: Final = declare_gauge(
    "plaita_runs_due_oldest_seconds", "store", "How long the oldest of them has been due; 0 when there is none."
)
WORKERS: Final = declare_gauge("plaita_workers", "store", "Worker processes that are alive.")
STREAM_LENGTH: Final = declare_gauge(
    "plaita_queue_stream_length", "store", "Messages of producers that are not accepted yet.", *_STREAM
)
PENDING: Final = declare_gauge(
    "plaita_queue_pending", "store", "Those of them that a worker took and did not finish.", *_STREAM
)
INBOX_AGE: Final = declare_gauge(
    "plaita_queue_oldest_seconds", "store", "How long the oldest of them has been waiting; 0 when there is none.",
    *_STREAM,
)  # fmt: skip
DLQ_LENGTH: Final = declare_gauge("plaita_queue_dlq_length", "store", "Dead letters.", *_STREAM)
DLQ_MAX: Final = declare_gauge(
    "plaita_queue_dlq_max_len", "worker", "How many of them the stream on Redis keeps.", *_STREAM
)
DLQ_SATURATED: Final = declare_gauge(
    "plaita_queue_dlq_saturated", "store", "1 when the next dead letter pushes the oldest one out.", *_STREAM
)
DELIVERIES_MAX: Final = declare_gauge(
    "plaita_queue_max_deliveries", "worker", "Attempts of a node at an error that would end its execution.", *_STREAM
)
IDLE_MIN: Final = declare_gauge(
    "plaita_queue_claim_min_idle_ms", "worker", "After how long a message is taken from a process that took it.",
    *_STREAM,
)  # fmt: skip
