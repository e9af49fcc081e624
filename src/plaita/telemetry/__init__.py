"""Every event the system reports about itself: the table (``events``) and where it goes (``sink``)."""

from plaita.telemetry.event import EVENTS, Event, Field, Level, Metric
from plaita.telemetry.sink import LogTelemetry, Telemetry

__all__ = ["EVENTS", "Event", "Field", "Level", "LogTelemetry", "Metric", "Telemetry"]
