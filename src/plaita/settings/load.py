"""From variables and a file to ``Settings``. The environment wins over the file, the file over the defaults."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plaita.base.errors import InputError
from plaita.base.moment import is_zone
from plaita.base.spelling import suggest
from plaita.settings.declared import (
    EngineSettings,
    HttpSettings,
    SandboxSettings,
    Settings,
    WorkerSettings,
)
from plaita.settings.keeping import EventSettings, StoreSettings
from plaita.settings.messages import MessageSettings
from plaita.settings.setting import METADATA_KEY, Setting, Value

_GROUPS: Final = {
    "store": StoreSettings,
    "worker": WorkerSettings,
    "events": EventSettings,
    "messages": MessageSettings,
    "engine": EngineSettings,
    "http": HttpSettings,
    "sandbox": SandboxSettings,
    "": Settings,
}


@dataclass(frozen=True, slots=True)
class Declared:
    """A setting in its place: ``group`` and ``attribute`` of ``Settings`` (``group`` empty: ``Settings`` itself)."""

    group: str
    attribute: str
    default: Value
    setting: Setting


def _declared() -> Iterator[Declared]:
    for group, owner in _GROUPS.items():
        for item in dataclasses.fields(owner):
            if METADATA_KEY in item.metadata:
                yield Declared(group, item.name, item.default, item.metadata[METADATA_KEY])  # type: ignore[arg-type]


SETTINGS: Final = tuple(_declared())
"""Every setting there is, in the order of the reference page."""


def load_settings(
    environ: Mapping[str, str], toml_path: Path | None = None, implied: Mapping[str, str] | None = None
) -> Settings:
    """Settings from ``environ`` and, when it exists, the TOML file; reads nothing else. ``implied``: values by variable
    for what neither names.

    Raises one ``InputError`` that names every bad variable or key, its value and what is allowed.
    """
    problems: list[tuple[str, str]] = []
    file = _read_file(toml_path, problems) if toml_path is not None else {}
    values: dict[str, dict[str, Value]] = {group: {} for group in _GROUPS}
    for item in SETTINGS:
        where, raw = _pick(item.setting, environ, file, toml_path)
        if not where and item.setting.variable in (implied or {}):
            where, raw = item.setting.variable, (implied or {})[item.setting.variable]
        if where:
            try:
                values[item.group][item.attribute] = item.setting.read(raw)
            except ValueError as e:
                problems.append((where, str(e)))
    _check_timezone(values["engine"], problems)
    _relate_lease(values["worker"], problems)
    if problems:
        first, *others = problems
        raise InputError(first[0], "; ".join([first[1], *(f"{where}: {reason}" for where, reason in others)]))
    own = values.pop("")
    groups = {group: _GROUPS[group](**given) for group, given in values.items()}
    return Settings(**groups, **own)  # type: ignore[arg-type]


def unknown_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables named ``PLAITA_…`` that mean nothing here, each with a hint (may be empty)."""
    known = {item.setting.variable for item in SETTINGS}
    return {name: suggest(name, known) for name in sorted(environ) if name.startswith("PLAITA_") and name not in known}


def _pick(
    setting: Setting, environ: Mapping[str, str], file: Mapping[str, object], path: Path | None
) -> tuple[str, object]:
    """Where the value was written and what was written; an empty place means nowhere."""
    if setting.variable in environ:
        return setting.variable, environ[setting.variable]
    if setting.key in file:
        return f"{path}: {setting.key}", file[setting.key]
    return "", None


def _read_file(path: Path, problems: list[tuple[str, str]]) -> dict[str, object]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as e:
        problems.append((str(path), f"cannot be read as TOML: {e}"))
        return {}
    known = {item.setting.key for item in SETTINGS}
    for key in content.keys() - known:
        hint = suggest(key, known) or f"known keys are {', '.join(sorted(known))}"
        problems.append((f"{path}: {key}", f"is no setting; {hint}"))
    return content


def _check_timezone(engine: Mapping[str, Value], problems: list[tuple[str, str]]) -> None:
    name = engine.get("timezone")
    if name is None:
        return
    if not is_zone(str(name)):
        problems.append(("PLAITA_TIMEZONE", f"{name!r} is not a time zone known here; write one such as Europe/Berlin"))


def _relate_lease(worker: dict[str, Value], problems: list[tuple[str, str]]) -> None:
    """A lease outlives two renewals and a gap in the pulse of the store, so that one lost answer does not lose it."""
    default = WorkerSettings()
    lease = worker.get("lease_ttl_seconds", default.lease_ttl_seconds)
    assert isinstance(lease, float)
    renew = worker.setdefault("renew_seconds", round(lease * 0.3, 3))
    assert isinstance(renew, float)
    if renew * 3 > lease:
        reason = f"{renew:g} s is more than a third of PLAITA_LEASE_TTL_SECONDS ({lease:g} s)"
        problems.append(("PLAITA_LEASE_RENEW_SECONDS", reason))
