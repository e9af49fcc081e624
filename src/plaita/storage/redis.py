"""The documented storages over a store on Redis, for synchronous code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from plaita.base.errors import InputError, NotSupported, TenantContextMissingError
from plaita.base.json import decode
from plaita.base.tenancy import current_tenant, tenant_is_set
from plaita.ports.backend import Backend
from plaita.ports.values import RunId
from plaita.storage.base import ExecutionState
from plaita.storage.bridge import OpenedStore
from plaita.storage.store import StoreExecutionStorage, StoreFlowStorage

if TYPE_CHECKING:
    from plaita.backends.limits import Limits
    from plaita.backends.redis import RedisBackend

DEFAULT_EXECUTION_STATE_TTL_DAYS: Final = 30
DEFAULT_NAMESPACE: Final = "plaita"
_DAY_SECONDS = 86_400
_TLS: Final = (
    "ssl_ca_certs",
    "ssl_ca_path",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_password",
    "ssl_cert_reqs",
    "ssl_check_hostname",
)


def execution_state_ttl_seconds() -> int:
    """How long an ended execution is kept, ``PLAITA_EXECUTION_STATE_TTL_DAYS``, in seconds."""
    from plaita.settings import current_settings

    return current_settings().store.retention_days * _DAY_SECONDS


class RedisExecutionStorage(StoreExecutionStorage):
    """The executions of a store on Redis, those of the tenant of the running context.

    ``client`` says where the server is in place of the other arguments; it is not used itself. ``kwargs`` are those of
    ``redis.Redis``; ``username``, ``unix_socket_path``, ``ssl`` and the files of TLS count, the rest is the client's
    own. Connects when it is first asked. With ``PLAITA_TENANCY=multi`` saving and deleting raise
    ``TenantContextMissingError`` unless a tenant was set.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int = 6379,
        db: int = 0,
        password: str | None = None,
        client: Any = None,
        namespace: str = "plaita",
        **kwargs: Any,
    ) -> None:
        given = {"host": host, "port": port, "db": db, "password": password, **kwargs}
        super().__init__(_opened(url_of(given, client), namespace))

    def save_execution_state(self, execution_id: str, state: ExecutionState) -> bool:
        """Take an execution over, for the tenant it names or the one of this context. Raises ``Conflict``."""
        tenant = state.tenant_id or _writing_tenant()
        return super().save_execution_state(execution_id, state.model_copy(update={"tenant_id": tenant}))

    def load_execution_state(self, execution_id: str) -> ExecutionState | None:
        found = super().load_execution_state(execution_id)
        return found if found is not None and found.tenant_id == current_tenant() else None

    def delete_execution_state(self, execution_id: str) -> bool:
        """Remove an ended execution; ``True`` as well when there is none. Raises ``Conflict`` while it lives."""
        _writing_tenant()
        if self.load_execution_state(execution_id) is not None:
            super().delete_execution_state(execution_id)
        return True

    def list_executions(
        self, query: Mapping[str, Any] | None = None, order_by: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[ExecutionState]:
        wanted = {"tenant_id": current_tenant(), **(query or {})}
        return super().list_executions(wanted, order_by, limit, offset)

    def load_execution_tombstone(self, execution_id: str) -> dict[str, Any] | None:
        """What is known of a deleted execution: ``tenant``, ``deleted_at`` (ISO 8601), ``reason``."""
        raw = self._store.ask(lambda backend: _tombstone(backend, execution_id))
        found: dict[str, Any] | None = None if raw is None else decode(raw)
        return found if found is not None and found.get("tenant") == current_tenant() else None


class RedisFlowStorage(StoreFlowStorage):
    """The published flows of a store on Redis. Takes what ``RedisExecutionStorage`` takes."""

    def __init__(
        self,
        host: str = "localhost",
        port: int = 6379,
        db: int = 0,
        password: str | None = None,
        client: Any = None,
        namespace: str = "plaita",
        **kwargs: Any,
    ) -> None:
        given = {"host": host, "port": port, "db": db, "password": password, **kwargs}
        super().__init__(_opened(url_of(given, client), namespace))


def url_of(given: Mapping[str, Any], client: Any = None) -> str:
    """The URL of the server that arguments of ``redis.Redis`` name, or that a client is for.

    Raises ``NotSupported`` for a client that finds its server by other means.
    """
    options = dict(given) if client is None else _options_of(client)
    user, password = (quote(options.get(name) or "", safe="") for name in ("username", "password"))
    login = f"{user}:{password}@" if user or password else ""
    socket, db = options.get("unix_socket_path") or options.get("path"), options.get("db") or 0
    if socket:
        return f"unix://{login}{quote(socket)}?db={db}"
    host = options.get("host") or "localhost"
    place = f"[{host}]" if ":" in host else host
    url = f"{login}{place}:{options.get('port') or 6379}/{db}"
    if not options.get("ssl"):
        return f"redis://{url}"
    tls = {name: _word(options[name]) for name in _TLS if options.get(name) is not None}
    return f"rediss://{url}{'?' if tls else ''}{urlencode(tls)}"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _options_of(client: Any) -> dict[str, Any]:
    pool = getattr(client, "connection_pool", None)
    options = getattr(pool, "connection_kwargs", None)
    if not isinstance(options, dict):
        raise InputError("client", f"is a client of Redis, not {type(client).__name__}")
    if hasattr(pool, "sentinel_manager"):
        raise NotSupported("a client of Sentinel names no server", "use Runtime.open('redis+sentinel://…')")
    return {"ssl": "SSL" in getattr(pool, "connection_class", type(None)).__name__, **options}


def redis_store(url: str, limits: Limits | None = None, namespace: str = "plaita") -> RedisBackend:
    """A store on Redis. Raises ``NotSupported`` without the client library."""
    try:
        from plaita.backends.redis import RedisBackend
    except ModuleNotFoundError as e:
        if e.name not in ("redis", "hiredis"):
            raise
        raise NotSupported("a store on Redis needs the client library", "pip install 'plaita[redis]'") from None
    return RedisBackend(url, limits=limits or _limits(namespace), prefix=namespace)


def _limits(namespace: str) -> Limits:
    """Those of the workers of these settings. Another namespace has streams of its own."""
    from plaita.backends.configured import limits_of
    from plaita.backends.limits import Streams
    from plaita.settings import current_settings
    from plaita.settings.current import environment

    limits = limits_of(current_settings(), environment())
    return limits if namespace == DEFAULT_NAMESPACE else replace(limits, streams=Streams())


def _opened(url: str, namespace: str) -> OpenedStore:
    return OpenedStore(lambda: redis_store(url, namespace=namespace))


def _writing_tenant() -> str:
    from plaita.settings import current_settings

    if not tenant_is_set() and current_settings().store.tenancy == "multi":
        raise TenantContextMissingError("nobody said for which tenant this is written", "set_current_tenant(…) first")
    return current_tenant()


async def _tombstone(backend: Backend, execution_id: str) -> bytes | None:
    from plaita.backends.redis import RedisBackend

    assert isinstance(backend, RedisBackend), "it was opened here"
    return await backend.tombstone(RunId(execution_id))
