"""Reading the fields of an ``http`` node, written out or computed. What cannot be read is a ``ValueError``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from plaita.base.duration import parse_duration_ms
from plaita.base.json import Json
from plaita.node.network.policy import Hosts, read_hosts

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "CONNECT", "OPTIONS", "TRACE"})
TIMEOUT_SECONDS_MAX: Final = 600
REDIRECTS_MAX: Final = 20
_SWITCH: Final = {"true": True, "false": False}


def read_method(value: Json) -> str:
    """A method in upper case. Raises ``ValueError``."""
    method = value.strip().upper() if isinstance(value, str) else ""
    if method not in METHODS:
        raise ValueError(f"method {value!r} is none of {', '.join(sorted(METHODS))}")
    return method


def read_text(value: Json) -> str:
    """A content type. Raises ``ValueError``."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"contentType is {value!r}, not a type such as application/json")
    return value


def read_switch(value: Json) -> bool:
    """True or false; never a guess, since a policy may hang on it. Raises ``ValueError``."""
    known = _SWITCH.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(known, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return known


def read_seconds(value: Json) -> float:
    """``requestTimeout``: seconds as a number or its digits, or an ISO 8601 duration. Raises ``ValueError``."""
    seconds: object = value
    if isinstance(value, str):
        try:
            seconds = float(value)
        except ValueError:
            seconds = parse_duration_ms(value) / 1000
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= TIMEOUT_SECONDS_MAX:
        raise ValueError(f"requestTimeout is {value!r}, not seconds above 0 up to {TIMEOUT_SECONDS_MAX}")
    return float(seconds)


def read_redirects(value: Json) -> int:
    """``maxRedirects``. Raises ``ValueError``."""
    count = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= REDIRECTS_MAX:
        raise ValueError(f"maxRedirects is {value!r}, not a whole number from 0 to {REDIRECTS_MAX}")
    return count


def _read_hosts(value: Json) -> Hosts | None:
    if value is None:
        return None
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(one, str) for one in entries):
        raise ValueError(f"{value!r} is no list of hosts")
    return read_hosts(entries)


def hosts_or_none(raw: Any, value: Json, field: str) -> Hosts | None:
    """The hosts of a rule. One that is there and evaluates to null is an error: it must not come to mean "any"."""
    if raw is not None and value is None:
        raise ValueError(f"{field} evaluates to null; an empty list allows nothing, leaving the field out allows all")
    try:
        return _read_hosts(value)
    except ValueError as e:
        raise ValueError(f"{field}: {e}") from None


def read_statuses(value: Json) -> frozenset[int]:
    """The statuses of ``failOn``: numbers, ``4xx``, ``500-599``, or a list of these. Raises ``ValueError``."""
    if value is None:
        return frozenset()
    entries = value if isinstance(value, list) else [value]
    return _statuses(tuple(str(one).strip().lower() if _is_status(one) else "" for one in entries), repr(value))


def _is_status(value: Json) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


@lru_cache(maxsize=64)
def _statuses(entries: tuple[str, ...], said: str) -> frozenset[int]:
    found: set[int] = set()
    for entry in entries:
        span = _span(entry)
        if span is None or not 100 <= span[0] <= span[1] <= 599:
            raise ValueError(f"failOn is {said}; write statuses such as 404, 5xx or 400-499")
        found.update(range(span[0], span[1] + 1))
    return frozenset(found)


def _span(entry: str) -> tuple[int, int] | None:
    first, dash, last = entry.partition("-")
    if len(entry) == 3 and entry.endswith("xx") and entry[0].isdecimal():
        return int(entry[0]) * 100, int(entry[0]) * 100 + 99
    if first.isdecimal() and (last.isdecimal() or not dash):
        return int(first), int(last or first)
    return None


READERS: Final[dict[str, Any]] = {
    "method": read_method,
    "content_type": read_text,
    "request_timeout": read_seconds,
    "max_redirects": read_redirects,
    "allowed_hosts": _read_hosts,
    "denied_hosts": _read_hosts,
    "block_private_networks": read_switch,
    "fail_on": read_statuses,
    "idempotency_key": read_switch,
}
"""What checks a field, by the name of the field."""
