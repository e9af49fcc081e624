"""Commands to a running service, over the channel ``plaita:control:{instance}`` of Redis. A worker obeys them too."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar, Final, Self

from plaita.base.clock import SystemClock
from plaita.base.json import parse
from plaita.base.moment import iso
from plaita.telemetry import events as told
from plaita.telemetry.sink import LogTelemetry

LOOK_S: Final = 0.5
"""How often the listener looks whether it is to end."""
REST_S: Final = 1.0
"""Between two tries to listen while Redis is away."""


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


class ControlListener:
    """Hears commands for one service in a thread of its own, and calls what was given for them.

    ``on_stop`` is told whether to stop gracefully; what ``on_status`` and ``on_reload_config`` answer is logged, as
    there is nobody to reply to. A connection that is lost is made anew; what was sent meanwhile is lost.
    """

    CONTROL_CHANNEL_PREFIX: ClassVar[str] = "plaita:control"

    def __init__(
        self,
        redis_client: Any,
        instance_id: str,
        on_stop: Callable[[bool], None] | None = None,
        on_status: Callable[[], dict[str, Any]] | None = None,
        on_reload_config: Callable[[], bool] | None = None,
    ) -> None:
        self._client, self._instance = redis_client, instance_id
        self._telemetry = LogTelemetry()
        self._handlers: dict[str, Callable[[ControlCommand], object]] = {}
        if on_stop is not None:
            self._handlers[ControlCommand.STOP] = lambda command: on_stop(command.graceful)
        if on_status is not None:
            self._handlers[ControlCommand.STATUS] = lambda _: on_status()
        if on_reload_config is not None:
            self._handlers[ControlCommand.RELOAD_CONFIG] = lambda _: on_reload_config()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def register_handler(self, command: str, handler: Callable[[ControlCommand], None]) -> None:
        """Call this for a command of your own, or in place of what was given for a known one."""
        self._handlers[command] = handler

    def start(self) -> None:
        """Listen; returns when the channel is open, or Redis is away. A listener that listens goes on."""
        if self._thread is not None:
            return
        self._end, opened = threading.Event(), threading.Event()
        self._thread = threading.Thread(
            target=self._listen, args=(self._end, opened), name="plaita-control", daemon=True
        )  # fmt: skip
        self._thread.start()
        opened.wait(REST_S)

    def stop(self) -> None:
        """Listen no more. A handler may call this itself."""
        self._end.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None

    def _listen(self, end: threading.Event, opened: threading.Event) -> None:
        while not end.is_set():
            try:
                self._hear(end, opened)
            except Exception as e:  # noqa: BLE001
                self._telemetry.emit(told.REGISTRY_FAILED, verb="listen", error=str(e))
                end.wait(REST_S)

    def _hear(self, end: threading.Event, opened: threading.Event) -> None:
        with self._client.pubsub() as channel:
            channel.subscribe(f"{self.CONTROL_CHANNEL_PREFIX}:{self._instance}")
            while not end.is_set():
                message = channel.get_message(timeout=LOOK_S)
                if message is not None and message["type"] == "subscribe":
                    opened.set()
                elif message is not None and message["type"] == "message":
                    self._handle_message(message["data"])

    def _handle_message(self, data: str | bytes) -> None:
        text = data.decode(errors="replace") if isinstance(data, bytes) else data
        try:
            command = ControlCommand.from_json(text)
        except (ValueError, TypeError):
            self._telemetry.emit(told.COMMAND_UNKNOWN, holder=self._instance, size=len(text))
            return
        handler = self._handlers.get(command.command)
        if handler is None:
            self._telemetry.emit(told.COMMAND_UNKNOWN, holder=self._instance, size=len(text))
            return
        self._telemetry.emit(told.COMMAND_HEARD, holder=self._instance, command=command.command)
        self._obey(handler, command)

    def _obey(self, handler: Callable[[ControlCommand], object], command: ControlCommand) -> None:
        try:
            handler(command)
        except Exception as e:  # noqa: BLE001
            error = f"{type(e).__name__}: {e}"
            self._telemetry.emit(told.COMMAND_FAILED, holder=self._instance, command=command.command, error=error)
