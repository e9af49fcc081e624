"""The numbers that events move: counters, sums and histograms, by the label that an event declares."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from plaita.telemetry.event import EVENTS, Event, Field, Metric

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the buckets of every histogram, in seconds."""
LABELS_MAX: Final = 100
"""So many values of a label are told apart; further ones are ``other``, so that no page grows without end."""
OTHER: Final = "other"
_NUMBERS: Final = (int, float)


@dataclass(slots=True)
class Histogram:
    """How often which value was seen; ``counts`` has one place more than there are bounds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def see(self, value: float) -> None:
        """One more value."""
        self.counts[bisect_left(BOUNDS, value)] += 1
        self.total += value


@dataclass(frozen=True, slots=True)
class Reading:
    """One metric as it is now, by the value of its label; the empty one for a metric without label."""

    metric: Metric
    event: Event
    values: Mapping[str, float]
    histograms: Mapping[str, Histogram]


class Numbers:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, dict[str, float]] = {}
        self._histograms: dict[str, dict[str, Histogram]] = {}

    def count(self, metric: Metric, fields: Mapping[str, Field]) -> None:
        """An event that moves ``metric`` happened."""
        grows = fields.get(metric.of, 0) if metric.of else 1
        if not isinstance(grows, _NUMBERS):
            return
        label = str(fields.get(metric.by, "")) if metric.by else ""
        with self._lock:
            if metric.kind == "histogram":
                seen = self._histograms.get(metric.name)
                found = seen.get(label) if seen else None
                (found or self._histogram(metric.name, label)).see(grows)
            else:
                values = self._values.setdefault(metric.name, {})
                label = _known(values, label)
                values[label] = values.get(label, 0) + grows

    def _histogram(self, name: str, label: str) -> Histogram:
        seen = self._histograms.setdefault(name, {})
        label = _known(seen, label)
        if label not in seen:
            seen[label] = Histogram()
        return seen[label]

    def totals(self) -> dict[str, float]:
        """Every metric by name, over all labels; of a histogram how many values it has seen. One that never moved
        is 0."""
        return {
            reading.metric.name: sum(reading.values.values()) + sum(sum(h.counts) for h in reading.histograms.values())
            for reading in self.readings()
        }

    def readings(self) -> list[Reading]:
        """Every metric there is, in the order of the events."""
        with self._lock:
            return [
                Reading(
                    e.metric,
                    e,
                    dict(self._values.get(e.metric.name, {})),
                    {k: Histogram(h.counts[:], h.total) for k, h in self._histograms.get(e.metric.name, {}).items()},
                )
                for e in EVENTS.values()
                if e.metric
            ]


def _known(known: Mapping[str, object], label: str) -> str:
    return label if label in known or len(known) < LABELS_MAX else OTHER
