"""Date and time as text. The moment and the zone come with the run, never from the machine."""

from __future__ import annotations

import datetime as dt
import re
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from plaita.base.json import Json
from plaita.engine.expression.function import FunctionCategory, FunctionSpec
from plaita.engine.expression.functions.arguments import text_of
from plaita.engine.expression.scope import Facts
from plaita.engine.values import OperationError

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FORMAT_MAX = 200
# The C library knows more, among it widths that build texts of any size.
_FORMAT = re.compile(r"(?:[^%]|%[aAbBdHIjmMpSUwWxXcyYzZfGuV%])*+", re.DOTALL)


def _moment(facts: Facts) -> dt.datetime:
    try:
        zone = dt.UTC if facts.timezone is None else ZoneInfo(facts.timezone)
        return (_EPOCH + dt.timedelta(milliseconds=facts.now_ms)).astimezone(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise OperationError(f"does not know the time zone {facts.timezone!r}") from None
    except OverflowError:
        raise OperationError(f"cannot write the moment {facts.now_ms} ms as a date") from None


def _formatted(facts: Facts, form: Json) -> str:
    text = text_of(form)
    if len(text) > _FORMAT_MAX or not _FORMAT.fullmatch(text) or "\0" in text:
        raise OperationError(f"needs a format of at most {_FORMAT_MAX} characters with codes such as %Y-%m-%d")
    return _moment(facts).strftime(text)


def now(facts: Facts, form: Json = "%Y-%m-%d %H:%M:%S") -> str:
    """The moment of this advance as text."""
    return _formatted(facts, form)


def today(facts: Facts, form: Json = "%Y-%m-%d") -> str:
    """The day of this advance as text."""
    return _formatted(facts, form)


FUNCTIONS: Final = (
    FunctionSpec("now", now, FunctionCategory.DATETIME, 0, 1, takes="facts", description="this moment, formatted"),
    FunctionSpec("today", today, FunctionCategory.DATETIME, 0, 1, takes="facts", description="this day, formatted"),
)
