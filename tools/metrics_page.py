"""The reference page of the metrics."""

from __future__ import annotations

from plaita.telemetry import EVENTS
from plaita.telemetry.gauges import GAUGES, Gauge
from plaita.telemetry.numbers import BOUNDS, LABELS_MAX, OTHER
from tools.page_parts import page, table

_INTRO = (
    "`plaita worker --metrics-port PORT` (`PLAITA_METRICS_PORT`) serves `/metrics` in the text format of Prometheus "
    "and `/health`. It needs `pip install 'plaita[metrics]'`, and nobody is asked for a password: let only your "
    "monitoring reach it (`PLAITA_METRICS_HOST`). Without a port nothing is counted."
)
_PROCESSES = (
    "With `--processes N` each process serves its own page: the first one on the port, the next one on the next, up to "
    "`PORT + N - 1`. Sum the counters of all of them; a process that was replaced begins at 0 again, as `rate()` "
    "expects."
)
_HEALTH = (
    '`/health` answers 200 with `{"status": "ready", …}` while the worker takes executions and its store answers. '
    "It answers 503 with the status `starting`, `draining`, `stopping`, `stopped` or `store unreachable`. A store that "
    "is away is no reason to restart a worker, which goes on by itself: use it to take a worker out of rotation, and "
    "the process itself as the sign of life."
)
_STORE = (
    "Read from the store when somebody looks, so every process of a store shows the same: take the `max` over them. "
    "While the store does not answer they are missing and `plaita_store_up` is 0."
)


def metrics_page(notice: str) -> str:
    """All metrics: what to watch first, then each with its sentence."""
    counted = [row for event in EVENTS.values() if event.metric for row in [_counter_row(event.name)]]
    return page(
        [
            notice,
            "# Metrics",
            _INTRO,
            _PROCESSES,
            _HEALTH,
            "## Of the store",
            _STORE,
            table("gauge", "labels", "meaning", rows=[_row(g) for g in GAUGES.values() if g.source == "store"]),
            "## Of the process",
            table("gauge", "labels", "meaning", rows=[_row(g) for g in GAUGES.values() if g.source == "worker"]),
            "## What happened",
            "Each is moved by one [event](events.md), counted since the process began. A counter ends in `_total`; a "
            f"histogram has `_bucket`, `_sum` and `_count`, with bounds from {BOUNDS[0]:g} to {BOUNDS[-1]:g} seconds. "
            f"A label has {LABELS_MAX} values at most, further ones are `{OTHER}`.",
            table("metric", "also as", "kind", "label", "moved by", "meaning", rows=counted),
        ]
    )


def _row(gauge: Gauge) -> tuple[str, ...]:
    return f"`{gauge.name}`", ", ".join(f"`{label}`" for label in gauge.labels), gauge.sentence


def _counter_row(name: str) -> tuple[str, ...]:
    event = EVENTS[name]
    metric = event.metric
    assert metric is not None
    kind = "histogram" if metric.kind == "histogram" else "counter"
    own = metric.name if kind == "histogram" else f"{metric.name}_total"
    documented = f"`{metric.documented}`" if metric.documented else ""
    by = f"`{metric.by}`" if metric.by else ""
    return f"`{own}`", documented, kind, by, f"`{name}`", event.sentence
