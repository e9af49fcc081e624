"""Metrics as text: the exposition format 0.0.4 that Prometheus and its kin read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from plaita.telemetry.gauges import Gauge
from plaita.telemetry.numbers import BOUNDS, Histogram, Reading

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]
Sample = tuple[Gauge, Labels, float]


def exposition(readings: Iterable[Reading], samples: Iterable[Sample]) -> str:
    """The page: what events counted, then what was read now. Samples of one gauge stand together."""
    lines = [line for reading in readings for line in _counted(reading)]
    last = None
    for gauge, labels, value in samples:
        if gauge is not last:
            lines += _head(gauge.name, "gauge", gauge.sentence)
            last = gauge
        lines.append(_line(gauge.name, labels, value))
    return "\n".join(lines) + "\n"


def shown_names(reading: Reading) -> list[str]:
    """The names a reader finds it under: counters end in ``_total``."""
    metric = reading.metric
    own = metric.name if metric.kind == "histogram" else f"{metric.name}_total"
    return [own, metric.documented] if metric.documented else [own]


def _counted(reading: Reading) -> Iterator[str]:
    metric = reading.metric
    for name in shown_names(reading):
        yield from _head(name, "histogram" if metric.kind == "histogram" else "counter", reading.event.sentence)
        if metric.kind == "histogram":
            empty = {} if metric.by else {"": Histogram()}
            for label, histogram in sorted((empty | dict(reading.histograms)).items()):
                yield from _buckets(name, _labelled(metric.by, label), histogram)
        else:
            values = {} if metric.by else {"": 0.0}
            for label, value in sorted((values | dict(reading.values)).items()):
                yield _line(name, _labelled(metric.by, label), value)


def _buckets(name: str, labels: Labels, histogram: Histogram) -> Iterator[str]:
    seen = 0
    for bound, count in zip((*BOUNDS, math.inf), histogram.counts, strict=True):
        seen += count
        yield _line(f"{name}_bucket", {**labels, "le": _number(bound)}, seen)
    yield _line(f"{name}_sum", labels, histogram.total)
    yield _line(f"{name}_count", labels, seen)


def _labelled(by: str, value: str) -> Labels:
    return {by: value} if by else {}


def _head(name: str, kind: str, sentence: str) -> list[str]:
    text = sentence.replace("\\", "\\\\").replace("\n", "\\n")
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Labels, value: float) -> str:
    pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{pairs}}} {_number(value)}" if pairs else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
