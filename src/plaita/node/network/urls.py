"""URLs as authors write them: read once, so that what is checked is what is connected to."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import quote_plus, unquote, urljoin

from plaita.base.json import Json
from plaita.node.network.addresses import numeric_host
from plaita.node.network.failures import cannot_build
from plaita.node.network.policy import SCHEMES, is_name, wire_name

PORTS: Final = {"http": 80, "https": 443}
MASK: Final = "***"
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(.*)", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ENDS_IN_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$")
"""Such a host is an address or nothing: no top-level domain is a number."""
_SECRET_NAME = re.compile(r"pass|secret|token|key|auth|sig|credential|session", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Url:
    """Where a request goes. ``host`` is in wire form, ``name`` what is resolved, ``target`` path and query.

    ``user``: user and password of the URL (``user:password``), empty without.
    """

    scheme: str
    host: str
    name: str
    port: int
    target: str
    user: str = ""

    @property
    def origin(self) -> tuple[str, str, int]:
        """What two URLs share that belong to one site."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """Host and port as the ``Host`` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS.get(self.scheme) else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def read_url(text: Json, query: Json = None) -> Url:
    """A URL with the values of ``query`` appended. Raises ``FailureRaised`` (1001) for what is none."""
    if not isinstance(text, str) or not text.strip():
        raise cannot_build(f"the url is {_short(text)}, not text of a URL")
    return _parsed(with_query(_plain_host(text.strip()), query))


def _plain_host(text: str) -> str:
    """The host as everybody reads it: ASCII, and a spelled IPv4 address in its usual form."""
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise cannot_build(f"the url {_short(masked(text))} has no scheme: write https://HOST/PATH")
    scheme, authority, rest = parts.groups()
    if "\\" in authority or authority.count("@") > 1 or any(c.isspace() for c in authority):
        raise cannot_build(f"the url {_short(masked(text))} has a host that cannot be read without doubt")
    user, at, place = authority.rpartition("@")
    before, colon, port = place.rpartition(":")
    host = before if colon and port.isdecimal() and not before.endswith(":") else place
    if not host or host.startswith("[") or (host.isascii() and not host[-1:].isdigit() and "0x" not in host.lower()):
        return text
    try:
        return f"{scheme}://{user}{at}{wire_name(host)}{place[len(host) :]}{rest}"
    except ValueError as e:
        raise cannot_build(str(e)) from None


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Url:
    import httpx

    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError, TypeError) as e:
        raise cannot_build(f"the url {_short(masked(text))} is none: {e}") from None
    return _checked(
        url.scheme, url.raw_host.decode("ascii"), url.port, url.raw_path.decode("ascii"), unquote(url.userinfo.decode())
    )


def _checked(scheme: str, host: str, port: int | None, target: str, user: str) -> Url:
    if scheme in SCHEMES:
        name = host.lower().removesuffix(".")
        if numeric_host(host) is None and (not is_name(name) or _ENDS_IN_NUMBER.search(name)):
            raise cannot_build(f"the url has no host that can be asked for: {_short(host)}")
        if port is not None and not 0 < port < 65_536:
            raise cannot_build(f"the url has port {port}; ports are 1 to 65535")
    return Url(scheme, wire_name(host), host.replace("%25", "%", 1), port or PORTS.get(scheme, 0), target or "/", user)


def joined(base: Url, location: str) -> Url:
    """Where a redirect leads. Its user and password are not used. Raises ``FailureRaised``."""
    text = location.strip()
    try:
        target = text if _SCHEME.match(text) else urljoin(str(base), text)
    except ValueError as e:
        raise cannot_build(f"the redirect to {_short(masked(text))} leads nowhere: {e}") from None
    url = read_url(target)
    return Url(url.scheme, url.host, url.name, url.port, url.target)


def with_query(text: str, query: Json) -> str:
    """The URL text with more query: null is left out, lists are repeated, objects are JSON."""
    if query is None:
        return text
    added = query.removeprefix("?") if isinstance(query, str) else urlencoded(query, "query")
    if not added:
        return text
    head, hash_mark, fragment = text.partition("#")
    sign = "" if head.endswith(("?", "&")) else "&" if "?" in head else "?"
    return f"{head}{sign}{added}{hash_mark}{fragment}"


def urlencoded(values: Json, what: str) -> str:
    """``a=1&b=x+y`` of an object. Raises ``FailureRaised`` for anything else."""
    if not isinstance(values, dict):
        raise cannot_build(f"{what} is {_short(values)}, not an object of names and values")
    return "&".join(f"{quote_plus(name)}={quote_plus(text)}" for name, text in _pairs(values))


def _pairs(values: dict[str, Json]) -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None:
                yield name, as_text(one)


def as_text(value: Json) -> str:
    """A value in a query, a form or a header: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def masked(text: str) -> str:
    """A URL as people may see it: without user and password, and without values whose names promise a secret."""
    parts = _PARTS.fullmatch(text.strip())
    head, rest = "", text
    if parts is not None:
        scheme, authority, rest = parts.groups()
        user, at, host = authority.rpartition("@")
        head = f"{scheme}://{MASK if user else ''}{at}{host}"
    path, mark, query = rest.partition("#")[0].partition("?")
    return f"{head}{path}{mark}{_masked_text(query)}"


def masked_query(query: Json) -> Json:
    """Query values as people may see them."""
    if isinstance(query, dict):
        return {name: MASK if _SECRET_NAME.search(name) else value for name, value in query.items()}
    return _masked_text(query) if isinstance(query, str) else query


def _masked_text(query: str) -> str:
    return "&".join(_masked_pair(pair) for pair in query.split("&"))


def _masked_pair(pair: str) -> str:
    name, equals, value = pair.partition("=")
    return f"{name}{equals}{MASK if value and _SECRET_NAME.search(name) else value}"


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
