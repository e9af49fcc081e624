"""One setting: its variable, bounds and sentence, and how text becomes its value."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Value: TypeAlias = int | float | str | bool | tuple[str, ...]
Kind = Literal["whole number", "number", "text", "choice", "list", "switch"]

METADATA_KEY = "setting"
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_SHOWN_MAX = 60
_LOGIN = re.compile(r"(?<=://)\S*@")
_SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Setting:
    """What one variable means.

    ``least`` and ``most`` are inclusive bounds of numbers; ``choices`` the allowed words of a choice; ``pattern`` a
    regular expression the whole text fits, ``expected`` the same in words.
    """

    variable: str
    kind: Kind
    sentence: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    expected: str = ""

    @property
    def key(self) -> str:
        """The name in ``settings.toml``: the variable without its prefix, in lower case."""
        return self.variable.removeprefix("PLAITA_").lower()

    @property
    def bounds(self) -> str:
        """What is allowed, in words: ``a whole number from 1 to 10000``."""
        if self.kind == "choice":
            return " or ".join(self.choices)
        if self.kind == "switch":
            return "true or false"
        if self.kind == "list":
            return "names separated by commas"
        if self.kind == "text":
            return self.expected or "text"
        return f"a {self.kind} from {_number(self.least)} to {_number(self.most)}"

    def read(self, raw: object) -> Value:
        """The value of a variable's text or a TOML value; raises ``ValueError`` saying what is allowed."""
        if self.kind == "list":
            return self._read_list(raw)
        if self.kind == "switch":
            return self._read_switch(raw)
        if self.kind in ("text", "choice"):
            return self._read_text(raw)
        return self._read_number(raw)

    def _read_list(self, raw: object) -> tuple[str, ...]:
        items = raw.split(",") if isinstance(raw, str) else raw
        if not isinstance(items, list) or not all(isinstance(i, str) for i in items):
            raise self._refusal(raw)
        return tuple(name for i in items if (name := i.strip()))

    def _read_switch(self, raw: object) -> bool:
        value = raw if isinstance(raw, bool) else _SWITCH.get(raw.strip().lower()) if isinstance(raw, str) else None
        if value is None:
            raise self._refusal(raw)
        return value

    def _read_text(self, raw: object) -> str:
        text = raw.strip() if isinstance(raw, str) else ""
        fits = text in self.choices if self.kind == "choice" else re.fullmatch(self.pattern or ".+", text)
        if not fits:
            raise self._refusal(raw)
        return text

    def _read_number(self, raw: object) -> int | float:
        value = _number_of(raw)
        whole = self.kind == "whole number"
        outside = not math.isfinite(value) or not (self.least or 0) <= value <= (self.most or math.inf)
        if outside or (whole and not isinstance(value, int)):
            raise self._refusal(raw)
        return value if whole else float(value)

    def _refusal(self, raw: object) -> ValueError:
        shown = repr(_LOGIN.sub("…@", raw) if isinstance(raw, str) else raw)
        shown = shown if len(shown) <= _SHOWN_MAX else shown[:_SHOWN_MAX] + "…"
        return ValueError(f"{shown} is not {self.bounds}")


def _number_of(raw: object) -> int | float:
    """The number that was written, or NaN."""
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return raw
    text = raw.strip() if isinstance(raw, str) else ""
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return math.nan


def _number(bound: float | None) -> str:
    return "any" if bound is None else f"{bound:g}" if bound < 10**6 else f"{bound:.0f}"


def declare(default: Any, setting: Setting) -> Any:
    """A dataclass field that carries its declaration."""
    return field(default=default, metadata={METADATA_KEY: setting})
