"""The settings of this process, for node code, which nobody hands them to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from plaita.settings.declared import Settings
from plaita.settings.load import load_settings

_current: list[Settings] = []


def current_settings() -> Settings:
    """What the composition root has read; in a program without one, the environment as it is at the first call.

    Raises ``InputError`` when a variable of the environment is bad.
    """
    if not _current:
        _current.append(load_settings(os.environ))
    return _current[0]


def use_settings(settings: Settings | None) -> None:
    """From now on these; ``None``: read the environment again at the next call."""
    _current[:] = [] if settings is None else [settings]


def environment() -> Mapping[str, str]:
    """The variables of this process, for what ``$ENV`` may read."""
    return os.environ


def inherited(names: Iterable[str]) -> dict[str, str]:
    """Those of the variables that this process has, for a child process."""
    return {name: os.environ[name] for name in names if name in os.environ}
