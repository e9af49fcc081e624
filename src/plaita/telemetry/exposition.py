"""Metrics as the text that Prometheus and its kin read, written by ``prometheus_client``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from plaita.base.errors import NotSupported
from plaita.telemetry.gauges import Gauge
from plaita.telemetry.numbers import BOUNDS, Histogram, Reading

if TYPE_CHECKING:
    from prometheus_client import Metric as Family

Labels = Mapping[str, str]
Sample = tuple[Gauge, Labels, float]
PACKAGE: Final = "prometheus_client"


def check_package() -> None:
    """Raises ``NotSupported`` when the package that writes the page is not installed."""
    if find_spec(PACKAGE) is None:
        raise NotSupported(
            "the package prometheus-client is not installed, and --metrics-port (PLAITA_METRICS_PORT) needs it",
            "pip install 'plaita[metrics]'",
        )


def exposition(readings: Iterable[Reading], samples: Iterable[Sample]) -> tuple[str, str]:
    """The page and its content type: what events counted, then what was read now. Samples of one gauge stand together.

    Raises ``NotSupported`` as ``check_package``.
    """
    check_package()
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Found([*_counted(readings), *_gauges(samples)]))
    return generate_latest(registry).decode(), CONTENT_TYPE_LATEST


def shown_names(reading: Reading) -> list[str]:
    """The names a reader finds it under: counters end in ``_total``."""
    metric = reading.metric
    own = metric.name if metric.kind == "histogram" else f"{metric.name}_total"
    return [own, metric.documented] if metric.documented else [own]


class _Found:
    """A collector of what is there already."""

    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        return self._families


def _counted(readings: Iterable[Reading]) -> Iterator[Family]:
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

    for reading in readings:
        metric, sentence = reading.metric, reading.event.sentence
        by = [metric.by] if metric.by else []
        for name in shown_names(reading):
            if metric.kind == "histogram":
                histogram = HistogramMetricFamily(name, sentence, labels=by)
                empty = {} if by else {"": Histogram()}
                for label, seen in sorted((empty | dict(reading.histograms)).items()):
                    histogram.add_metric([label] if by else [], _buckets(seen), seen.total)
                yield histogram
            else:
                counter = CounterMetricFamily(name, sentence, labels=by)
                for label, value in sorted((({} if by else {"": 0.0}) | dict(reading.values)).items()):
                    counter.add_metric([label] if by else [], value)
                yield counter


def _gauges(samples: Iterable[Sample]) -> Iterator[Family]:
    from prometheus_client.core import GaugeMetricFamily

    families: dict[str, GaugeMetricFamily] = {}
    for gauge, labels, value in samples:
        family = families.get(gauge.name)
        if family is None:
            family = families[gauge.name] = GaugeMetricFamily(gauge.name, gauge.sentence, labels=gauge.labels)
        family.add_metric([labels[name] for name in gauge.labels], value)
    yield from families.values()


def _buckets(seen: Histogram) -> list[tuple[str, float]]:
    bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
    return list(zip(bounds, accumulate(seen.counts), strict=True))
