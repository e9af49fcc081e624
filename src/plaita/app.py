"""The composition root: the only place that knows which store and which settings."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from plaita.backends.configured import limits_of
from plaita.backends.limits import Streams
from plaita.backends.sqlite import SqliteBackend
from plaita.backends.sqlite.connection import is_ready as readable
from plaita.base.clock import new_id
from plaita.base.duration import DAY_MS
from plaita.base.errors import NotSupported, Unavailable
from plaita.base.machine import host_address
from plaita.base.version import VERSION
from plaita.ports.backend import Backend
from plaita.ports.processes import Facts
from plaita.ports.programs import ProgramEvents
from plaita.ports.published import PublishedRows
from plaita.ports.values import RunId
from plaita.settings import Settings, StoreSettings, load_settings, unknown_variables, use_settings

if TYPE_CHECKING:
    from plaita.server.worker import WorkerOptions

HOME = ".plaita"
SQLITE = "sqlite:///"
REDIS_VARIABLES = ("PLAITA_REDIS_URL", "REDIS_URL")
REDIS = ("redis://", "rediss://", "unix://", "redis+sentinel://", "rediss+sentinel://")


def read_settings(store: str | None = None) -> Settings:
    """Settings of this process: environment and ``.plaita/settings.toml``; ``store`` overrides the store.

    What is read also holds for node code, which nobody hands its settings to.
    """
    environ = dict(os.environ)
    if store:
        environ["PLAITA_STORE"] = store
    home = find_home(Path.cwd())
    settings = load_settings(environ, None if home is None else home / "settings.toml", _implied(environ))
    places = (Path.cwd(),) if home is None else (Path.cwd(), home.parent)
    settings = replace(settings, imports=tuple(_placed(name, places) for name in settings.imports))
    use_settings(settings)
    return settings


def _implied(environ: Mapping[str, str]) -> dict[str, str]:
    """The documented variables of a Redis name the store of whoever names no other."""
    url = next((environ[name] for name in REDIS_VARIABLES if environ.get(name)), "")
    return {"PLAITA_STORE": url} if url else {}


def as_program(given: Mapping[str, str]) -> dict[str, str]:
    """The variables of a documented program, which works on Redis; ``given`` are those that its flags set.

    The store is that of the flags, else ``PLAITA_REDIS_URL``, ``REDIS_URL`` or ``PLAITA_STORE``, else a Redis on this
    machine. Raises ``InputError`` with everything that is wrong.
    """
    environ = {**os.environ, **given}
    names = (*REDIS_VARIABLES, "PLAITA_STORE")
    chosen = next((environ[name] for name in names if environ.get(name)), StoreSettings().redis_url)
    variables = {**given, "PLAITA_STORE": given.get("PLAITA_STORE", chosen)}
    if "PLAITA_QUEUE_NAME" not in environ and environ.get("QUEUE_NAME"):
        variables["PLAITA_QUEUE_NAME"] = environ["QUEUE_NAME"]
    home = find_home(Path.cwd())
    load_settings({**environ, **variables}, None if home is None else home / "settings.toml")
    return variables


def become(variables: Mapping[str, str]) -> None:
    """From now on this process and its children have these variables."""
    os.environ.update(variables)


def _placed(name: str, places: Sequence[Path]) -> str:
    """A relative ``.py`` file is looked for in the working directory, then beside ``.plaita/``."""
    if not name.endswith(".py"):
        return name
    found = next((place / name for place in places if (place / name).is_file()), places[0] / name)
    return str(found.resolve())


def strange_variables() -> dict[str, str]:
    """Variables of this process with our prefix that mean nothing, each with a hint."""
    return unknown_variables(dict(os.environ))


def find_home(start: Path) -> Path | None:
    """The nearest ``.plaita`` directory from ``start`` upwards, as git looks for its own."""
    return next((d / HOME for d in (start, *start.parents) if (d / HOME).is_dir()), None)


def store_path(url: str) -> Path:
    """The file a SQLite URL names; a relative path inside ``.plaita/`` is looked for upwards."""
    path = Path(url.removeprefix(SQLITE))
    if path.is_absolute() or path.parts[0] != HOME:
        return path
    home = find_home(Path.cwd())
    return path if home is None else home.joinpath(*path.parts[1:])


def open_store(settings: Settings, *, create: bool = True) -> Backend:
    """The store of the settings. ``create`` false: a store that does not exist is ``Unavailable``.

    Raises ``Unavailable`` (cannot be opened), ``NotSupported`` (no such kind of store here) or ``InputError`` (the URL
    makes no sense).
    """
    if sys.platform == "win32":
        raise NotSupported("plaita runs on Linux and macOS, not on Windows", "use WSL 2")
    url = settings.store.url
    if url == "memory:":
        from plaita.backends.memory import MemoryBackend

        return MemoryBackend(limits=limits_of(settings, os.environ))
    if url.startswith(REDIS):
        return _on_redis(settings)
    path = store_path(url)
    if not path.exists():
        if not create:
            raise Unavailable(f"there is no store at {path}", "plaita run FLOW creates one")
        _make_home(path)
    return SqliteBackend(path, limits=limits_of(settings, os.environ), synchronous=settings.store.sqlite_synchronous)


def is_ready(settings: Settings) -> bool:
    """Is there a store that can be read at once and as it is? A look that creates, migrates and waits for nothing."""
    url = settings.store.url
    return url.startswith(REDIS) or (url.startswith(SQLITE) and readable(store_path(url)))


def _on_redis(settings: Settings) -> Backend:
    try:
        from plaita.backends.redis import RedisBackend
    except ModuleNotFoundError as e:
        if e.name not in ("redis", "hiredis"):
            raise
        raise NotSupported("a store on Redis needs the client library", "pip install 'plaita[redis]'") from None
    return RedisBackend(settings.store.url, limits=limits_of(settings, os.environ))


def _make_home(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as e:
        raise Unavailable(f"the store {path} cannot be created: {e.strerror}", "check the directory") from None


def store_opener(settings: Settings) -> Callable[[], Backend] | None:
    """How another thread opens the same store; ``None`` when only one loop may use it."""
    return None if settings.store.url == "memory:" else lambda: open_store(settings, create=False)


def worker_options(
    settings: Settings,
    *,
    only: RunId | None = None,
    queues: tuple[str, ...] = ("default",),
    concurrency: int | None = None,
    holder: str = "",
    named: bool = False,
) -> WorkerOptions:
    """Worker options from the settings. ``named``: the worker says who it is, and goes on saying so."""
    from plaita.server.worker import WorkerOptions

    return WorkerOptions(
        concurrency=concurrency or settings.worker.concurrency,
        pool_size=settings.worker.pool_size,
        queues=queues,
        only=only,
        imports=settings.imports,
        renew_ms=settings.worker.renew_ms,
        drain_ms=settings.worker.drain_timeout_ms,
        timezone=settings.engine.timezone,
        active_ms_max=settings.engine.execution_deadline_ms,
        attempts_max=settings.worker.attempts_max,
        definition_change=settings.worker.definition_change,
        env=os.environ,
        holder=holder,
        facts=_facts(settings) if named else Facts(),
        retention_ms=settings.store.retention_days * DAY_MS if only is None else None,
    )


def stream_names(settings: Settings) -> tuple[str, str]:
    """The streams of producers' messages and of dead letters on Redis."""
    keys = Streams(settings.store.queue_name, settings.store.dlq_key).keys()
    return keys["inbox"], keys["dlq"]


def log_secrets(settings: Settings) -> list[str]:
    """Texts of the settings that no log may show: passwords in URLs."""
    found = (_password(url) for url in (settings.store.url, settings.worker.alert_webhook))
    return [password for password in found if password]


def _password(url: str) -> str:
    """Empty for a URL without one, and for a text that is no URL: whoever opens it says so."""
    try:
        return unquote(urlsplit(url).password or "")
    except ValueError:
        return ""


def published_rows(store: Backend) -> PublishedRows:
    """What the published system keeps on the server of this store. Raises ``NotSupported`` where it keeps nothing."""
    if store.name.startswith(REDIS):
        from plaita.backends.redis import RedisBackend

        if isinstance(store, RedisBackend):
            return store.published
    raise NotSupported(
        f"{store.name} holds no executions of the published system: those are on Redis", "--store redis://…"
    )


def program_events(store: Backend) -> ProgramEvents | None:
    """Where programs publish events beside this store; ``None`` where they cannot."""
    if not store.name.startswith(REDIS):
        return None
    from plaita.backends.redis import RedisBackend

    return store.programs if isinstance(store, RedisBackend) else None


def worker_name(settings: Settings) -> str:
    """The name of a worker in lists, commands and metrics: what the settings say, else one that nobody else has."""
    host = socket.gethostname().replace(":", "-") or "worker"
    return settings.worker.instance_id or f"{host}-{new_id()[:8]}"


def _facts(settings: Settings) -> Facts:
    worker, store = settings.worker, settings.store
    setup: dict[str, str | int | float | bool] = {
        "version": VERSION,
        "lease_ttl_seconds": worker.lease_ttl_seconds,
        "renew_seconds": worker.renew_seconds,
        "attempts_max": worker.attempts_max,
        "definition_change": worker.definition_change,
        "execution_deadline_seconds": settings.engine.execution_deadline_seconds,
        "timezone": settings.engine.timezone,
        "tenant_running_max": settings.messages.tenant_running_max,
        "durability": store.durability,
        "retention_days": store.retention_days,
        "history_max_len": store.history_max_len,
        "documented_keys": store.documented_keys,
    }
    return Facts(worker_name(settings), host_address(), version=VERSION, listed=worker.registry, setup=setup)
