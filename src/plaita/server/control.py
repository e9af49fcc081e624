"""Commands to a running service. The channel they come over comes later; a worker here obeys signals."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from plaita.base.absent import REDIS, absent
from plaita.base.clock import SystemClock
from plaita.base.json import parse
from plaita.base.moment import iso

__getattr__ = absent("plaita.server.control", ControlListener=REDIS)


class ControlCommand:
    """One command; what it does not know of itself is in ``extra``."""

    STOP: ClassVar[str] = "stop"
    STATUS: ClassVar[str] = "status"
    RELOAD_CONFIG: ClassVar[str] = "reload_config"

    def __init__(self, command: str, graceful: bool = True, timestamp: str | None = None, **kwargs: Any) -> None:
        self.command, self.graceful, self.extra = command, graceful, kwargs
        self.timestamp = timestamp or iso(SystemClock().now_ms())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """A command from its document."""
        return cls(**data)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """A command from JSON text."""
        return cls.from_dict(parse(text, "the command"))
