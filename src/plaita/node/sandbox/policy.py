"""What ``code`` nodes may ask for: backends and languages. The process of a script does not import this."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from plaita.base.json import Json
from plaita.base.spelling import suggest
from plaita.settings import current_settings

BACKENDS: Final = ("subprocess", "restricted")
REFUSED: Final = {
    "docker": "is not available in this release",
    "unsafe": "would run the code inside the worker, which this release does not do",
}
"""Documented backends that a program may allow and a node may not use."""
EXTRA: Final = "pip install 'plaita[restricted]'"
runners: Final[dict[str, Callable[[str, Json], Any]]] = {}
"""What runs the languages that a program has added, by language."""


@dataclass(frozen=True, slots=True)
class CodePolicy:
    """What nodes may ask for. Raises ``ValueError`` for a backend or language that nobody knows."""

    backends: tuple[str, ...]
    languages: tuple[str, ...]
    default_backend: str

    def __post_init__(self) -> None:
        for name in (*self.backends, self.default_backend):
            if name not in BACKENDS and name not in REFUSED:
                known = [*BACKENDS, *REFUSED]
                raise ValueError(f"there is no backend {name!r}; {suggest(name, known) or f'known: {known}'}")
        if unknown := set(self.languages) - {"python", "js", *runners}:
            raise ValueError(f"there is no language {min(unknown)!r}; register_runner adds one")
        if self.default_backend not in self.backends:
            raise ValueError(f"the default backend {self.default_backend!r} is not among the allowed {self.backends}")

    def problem(self, backend: str) -> str:
        """Why a backend cannot be used, empty when it can."""
        if backend in REFUSED:
            return f"backend {backend!r} {REFUSED[backend]}"
        if backend not in self.backends:
            known = f"allowed here: {', '.join(self.backends)}"
            return f"backend {backend!r} is not allowed; {known}" if backend in BACKENDS else _no_such(backend, known)
        if backend == "restricted" and find_spec("RestrictedPython") is None:
            return f"backend 'restricted' needs the package RestrictedPython: {EXTRA}"
        return ""


def _no_such(backend: str, known: str) -> str:
    return f"there is no backend {backend!r}; {suggest(backend, BACKENDS) or known}"


def policy_of(
    default_backend: str | None = None,
    allowed_backends: Iterable[str] | None = None,
    allowed_languages: Iterable[str] | None = None,
) -> CodePolicy:
    """A policy; what is not given comes from the settings. The default is the first allowed backend that exists."""
    settings = current_settings().sandbox
    backends = tuple(settings.allowed_backends if allowed_backends is None else allowed_backends)
    languages = tuple(settings.allowed_languages if allowed_languages is None else allowed_languages)
    if default_backend is not None and allowed_backends is None:
        backends = tuple(dict.fromkeys((*backends, default_backend)))
    chosen = default_backend or next((b for b in backends if b in BACKENDS), BACKENDS[0])
    return CodePolicy(backends, languages, chosen)
