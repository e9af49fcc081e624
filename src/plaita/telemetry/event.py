"""What an event is. The events themselves are in ``plaita.telemetry.events``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Level = Literal["debug", "info", "warning", "error"]
Field: TypeAlias = str | int | float | bool | None
"""A value an event may carry: ids, names and numbers; never data of a flow and never a secret."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A counter grows by one an event, a sum by the field ``of``; a histogram sorts the values of ``of``, in seconds.

    ``by`` is the field whose values are told apart. ``documented``: the whole name under which it is shown as well.
    """

    name: str
    kind: Literal["counter", "sum", "histogram"] = "counter"
    of: str = ""
    by: str = ""
    documented: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One kind of fact. ``loss``: it reports that something was dropped, clamped or answered by a fallback.

    ``seldom`` names fields: of events that are alike in those, one is written in so many seconds; all are counted.
    """

    name: str
    level: Level
    sentence: str
    fields: tuple[str, ...]
    metric: Metric | None
    loss: bool
    seldom: tuple[str, ...]


EVENTS: Final[dict[str, Event]] = {}
"""All events by name, in the order of the reference page."""


def declare(
    name: str,
    level: Level,
    sentence: str,
    *fields: str,
    metric: str | Metric = "",
    loss: bool = False,
    seldom: str = "",
) -> Event:
    """Enter an event into the table.

    Each of ``fields`` is one or more names separated by spaces, as ``seldom`` is; a ``metric`` text names a counter.
    """
    if name in EVENTS:
        raise ValueError(f"event {name!r} is declared twice")
    if (loss or seldom) and not metric:
        raise ValueError(f"event {name!r} reports a loss or is seldom written, so it needs a counter")
    counted = Metric(metric) if isinstance(metric, str) and metric else metric or None
    assert not isinstance(counted, str)
    names = tuple(each for group in fields for each in group.split())
    EVENTS[name] = Event(name, level, sentence, names, counted, loss, tuple(seldom.split()))
    return EVENTS[name]
