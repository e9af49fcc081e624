"""What a running service says of itself. The registry that shows it to others comes later."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any, Self

from plaita.base.absent import REDIS, absent
from plaita.base.clock import SystemClock
from plaita.base.json import parse
from plaita.base.moment import iso

__getattr__ = absent("plaita.server.registry", ServiceRegistry=REDIS)


def _now() -> str | None:
    return iso(SystemClock().now_ms())


@dataclass(slots=True)
class ServiceInfo:
    """One instance of a service; times are ISO 8601."""

    instance_id: str
    service_type: str
    host: str
    status: str = "starting"
    start_time: str | None = field(default_factory=_now)
    metadata: dict[str, Any] | None = None
    active_tasks: int = 0
    last_heartbeat: str | None = field(default_factory=_now)

    def __post_init__(self) -> None:
        self.start_time = self.start_time or _now()
        self.last_heartbeat = self.last_heartbeat or _now()
        self.metadata = {} if self.metadata is None else self.metadata

    def to_dict(self) -> dict[str, Any]:
        """All fields."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def to_json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read what ``to_dict`` gave; unknown keys are ignored."""
        known = {one.name for one in fields(cls)}
        return cls(**{key: value for key, value in data.items() if key in known})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` gave."""
        return cls.from_dict(parse(text, "the service"))
