"""The composition root: the only place that knows which store and which settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from plaita.backends.memory import MemoryBackend
from plaita.backends.rows import Limits
from plaita.backends.sqlite import SqliteBackend
from plaita.backends.sqlite.connection import is_ready as readable
from plaita.base.duration import DAY_MS
from plaita.base.errors import NotSupported, Unavailable
from plaita.policy.lease import plan_lease
from plaita.ports.backend import Backend
from plaita.ports.values import RunId
from plaita.server.worker.worker import WorkerOptions
from plaita.settings import Settings, load_settings, unknown_variables, use_settings

HOME = ".plaita"
SQLITE = "sqlite:///"
REDIS = ("redis://", "rediss://", "unix://", "redis+sentinel://", "rediss+sentinel://")


def read_settings(store: str | None = None) -> Settings:
    """Settings of this process: environment and ``.plaita/settings.toml``; ``store`` overrides the store.

    What is read also holds for node code, which nobody hands its settings to.
    """
    environ = dict(os.environ)
    if store:
        environ["PLAITA_STORE"] = store
    home = find_home(Path.cwd())
    settings = load_settings(environ, None if home is None else home / "settings.toml")
    places = (Path.cwd(),) if home is None else (Path.cwd(), home.parent)
    settings = replace(settings, imports=tuple(_placed(name, places) for name in settings.imports))
    use_settings(settings)
    return settings


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
        return MemoryBackend(lease_ms=settings.worker.lease_ttl_ms)
    if url.startswith(REDIS):
        return _on_redis(settings)
    path = store_path(url)
    if not path.exists():
        if not create:
            raise Unavailable(f"there is no store at {path}", "plaita run FLOW creates one")
        _make_home(path)
    return SqliteBackend(path, lease_ms=settings.worker.lease_ttl_ms, synchronous=settings.store.sqlite_synchronous)


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
    store = settings.store
    limits = Limits(
        lease=plan_lease(settings.worker.lease_ttl_ms),
        row_ttl_ms=store.retention_days * DAY_MS,
        claim_min_idle_ms=store.claim_min_idle_ms,
        dlq_max=store.dlq_max_len,
    )
    return RedisBackend(store.url, limits=limits)


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
) -> WorkerOptions:
    """Worker options from the settings."""
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
        env=os.environ,
        retention_ms=settings.store.retention_days * DAY_MS if only is None else None,
    )
