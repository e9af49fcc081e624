"""The documented registry on Redis: what services run, and what each says of itself.

A worker shows itself there; programs read it, and enter services of their own.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, Self, TypeVar

from plaita.base.clock import SystemClock, new_id
from plaita.base.errors import InputError
from plaita.base.ids import derived_id
from plaita.base.json import parse
from plaita.base.machine import host_address
from plaita.base.moment import iso
from plaita.telemetry import events as told
from plaita.telemetry.sink import LogTelemetry

T = TypeVar("T")

STATUS_STARTING: Final = "starting"
STATUS_RUNNING: Final = "running"
STATUS_DRAINING: Final = "draining"
STATUS_STOPPING: Final = "stopping"
STATUS_STOPPED: Final = "stopped"
STATUS_CLOSED: Final = "closed"
DISPATCHABLE_STATUS: Final = STATUS_RUNNING
VALID_STATUSES: Final = frozenset(
    {STATUS_STARTING, STATUS_RUNNING, STATUS_DRAINING, STATUS_STOPPING, STATUS_STOPPED, STATUS_CLOSED}
)
OVER: Final = (STATUS_STOPPED, STATUS_CLOSED)
FLUSH_PAUSES_S: Final = (0.1, 0.2)
"""Between the tries to write at once that a service drains or stops."""
PAGE: Final = 200


def _now() -> str | None:
    return iso(SystemClock().now_ms())


@dataclass(slots=True)
class ServiceInfo:
    """One instance of a service; times are ISO 8601."""

    instance_id: str
    service_type: str
    host: str
    status: str = STATUS_STARTING
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
        """Read what ``to_dict`` gave; unknown keys are ignored. Raises ``InputError`` for what is no object."""
        if not isinstance(data, dict):
            raise InputError("the service", f"is no object but {type(data).__name__}")
        known = {one.name for one in fields(cls)}
        return cls(**{key: value for key, value in data.items() if key in known})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` gave."""
        return cls.from_dict(parse(text, "the service"))


class ServiceRegistry:
    """Services under ``plaita:registry:{service_type}:{instance_id}``: records that run out unless they are renewed.

    ``ttl`` and ``heartbeat_interval`` are seconds. A registry that cannot be reached answers ``False``, ``None`` or an
    empty list, and is counted in ``plaita_registry_failures``: no service stops because nobody can see it.
    """

    DEFAULT_TTL: ClassVar[int] = 30
    DEFAULT_HEARTBEAT_INTERVAL: ClassVar[int] = 10
    REGISTRY_PREFIX: ClassVar[str] = "plaita:registry"

    def __init__(
        self, redis_client: Any, ttl: int = DEFAULT_TTL, heartbeat_interval: int = DEFAULT_HEARTBEAT_INTERVAL
    ) -> None:
        self._client, self._ttl, self._interval = redis_client, ttl, heartbeat_interval
        self._telemetry = LogTelemetry()
        self._lock = threading.RLock()
        self._current: ServiceInfo | None = None
        self._left: set[tuple[str, str]] = set()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @staticmethod
    def generate_instance_id() -> str:
        """A new name: the host and 8 hexadecimal characters."""
        host = host_address().partition("/")[0].replace(":", "-")
        return f"{host}-{derived_id('instance', new_id())[:8]}"

    @staticmethod
    def get_host_address() -> str:
        """``NAME/ADDRESS`` of this machine."""
        return host_address()

    def register(self, service_info: ServiceInfo) -> bool:
        """Enter a service: a starting one is running from now on. ``False`` for one that has stopped."""
        _check(service_info)
        with self._lock:
            if service_info.status in OVER:
                return False
            if service_info.status == STATUS_STARTING:
                service_info.status = STATUS_RUNNING
            self._current = service_info
            self._left.discard((service_info.service_type, service_info.instance_id))
            return self._write(service_info)

    def heartbeat(self, service_info: ServiceInfo) -> bool:
        """Write the record again, with the time of now. ``False`` once the service has stopped or was taken out: a
        record that is gone does not come back by this."""
        with self._lock:
            name = (service_info.service_type, service_info.instance_id)
            if service_info.status in OVER or name in self._left:
                return False
            service_info.last_heartbeat = _now()
            return self._write(service_info)

    def update_service_info(
        self, active_tasks: int | None = None, metadata: dict[str, Any] | None = None, status: str | None = None
    ) -> None:
        """Change the service that was registered last. A new status is written at once, all else with the next beat.

        Raises ``InputError`` for a status that there is not.
        """
        if status is not None and status not in VALID_STATUSES:
            raise InputError("status", f"{status!r} is none of {', '.join(sorted(VALID_STATUSES))}")
        with self._lock:
            service = self._current
            if service is None:
                return
            if active_tasks is not None:
                service.active_tasks = active_tasks
            service.metadata = {**(service.metadata or {}), **(metadata or {})}
            if status is None or status == service.status:
                return
            service.status = status
        self._flush(service)

    def unregister(self, service_type: str, instance_id: str) -> bool:
        """Take a service out. ``False`` when the registry cannot be reached."""
        with self._lock:
            self._left.add((service_type, instance_id))
            key = self._key(service_type, instance_id)
            return self._safely("unregister", lambda: self._client.delete(key) is not None, False)

    def get_service(self, service_type: str, instance_id: str) -> ServiceInfo | None:
        """One service; ``None`` when there is none, or its record makes no sense."""
        key = self._key(service_type, instance_id)
        return _read(self._safely("get", lambda: self._client.get(key), None))

    def list_services(self, service_type: str | None = None) -> list[ServiceInfo]:
        """Every service, or those of a type, by name. A record that makes no sense is left out."""

        def ask() -> list[Any]:
            keys = self._keys(service_type)
            return list(self._client.mget(keys)) if keys else []

        nothing: list[Any] = []
        found = (_read(raw) for raw in self._safely("list", ask, nothing))
        return [service for service in found if service is not None]

    def get_service_types(self) -> list[str]:
        """The types of which there are services."""
        nothing: list[str] = []
        keys = self._safely("types", lambda: self._keys(None), nothing)
        return sorted({key.split(":")[2] for key in keys})

    def start_heartbeat(self, service_info: ServiceInfo, should_write: Callable[[], bool] | None = None) -> None:
        """Beat in a thread until ``stop_heartbeat``; not while ``should_write`` says no."""
        self.stop_heartbeat()
        self._stop = stop = threading.Event()

        def beat() -> None:
            while not stop.wait(self._interval):
                if should_write is None or should_write():
                    self.heartbeat(service_info)

        self._thread = threading.Thread(target=beat, name="plaita-registry", daemon=True)
        self._thread.start()

    def stop_heartbeat(self) -> None:
        """Beat no more."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None

    def _key(self, service_type: str, instance_id: str) -> str:
        return f"{self.REGISTRY_PREFIX}:{service_type}:{instance_id}"

    def _keys(self, service_type: str | None) -> list[str]:
        pattern = f"{self.REGISTRY_PREFIX}:{service_type or '*'}:*"
        found = (_text(key) for key in self._client.scan_iter(match=pattern, count=PAGE))
        return sorted({key for key in found if key.count(":") == 3})

    def _flush(self, service: ServiceInfo) -> None:
        for pause_s in (*FLUSH_PAUSES_S, None):
            if self.heartbeat(service) or service.status in OVER or pause_s is None:
                return
            self._stop.wait(pause_s)

    def _write(self, service: ServiceInfo) -> bool:
        key = self._key(service.service_type, service.instance_id)
        return self._safely("write", lambda: bool(self._client.set(key, service.to_json(), ex=self._ttl)), False)

    def _safely(self, verb: str, ask: Callable[[], T], otherwise: T) -> T:
        try:
            return ask()
        except Exception as e:  # noqa: BLE001
            self._telemetry.emit(told.REGISTRY_FAILED, verb=verb, error=str(e))
            return otherwise


def _check(service: ServiceInfo) -> None:
    """Readers take keys apart at the colons."""
    for name, text in (("service_type", service.service_type), ("instance_id", service.instance_id)):
        if not text or ":" in text:
            raise InputError(name, f"{text!r} is empty or has a colon")


def _read(raw: Any) -> ServiceInfo | None:
    try:
        return None if raw is None else ServiceInfo.from_json(_text(raw))
    except (InputError, TypeError):
        return None


def _text(raw: Any) -> str:
    return raw.decode(errors="replace") if isinstance(raw, bytes) else str(raw)
