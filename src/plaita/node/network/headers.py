"""Headers of requests and answers, and what of a request goes on with a redirect."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from plaita.base.json import Json
from plaita.node.network.failures import cannot_build
from plaita.node.network.urls import MASK, Url, as_text

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
REPEATABLE_METHODS: Final = SAFE_METHODS | {"PUT", "DELETE"}
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_FORBIDDEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_FRAMING: Final = frozenset(
    {"connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Said by the connection itself; a second voice about them is how requests are smuggled."""
_GOES_ANYWHERE: Final = frozenset({"user-agent", "idempotency-key", "range", "cache-control", "pragma"})
_ABOUT_CONTENT: Final = "content-"
_SHOWN: Final = _GOES_ANYWHERE | {
    "host",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "prefer",
}

Header = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it is sent. ``headers`` has no ``Host``, unless the author gave one."""

    method: str
    url: Url
    headers: tuple[Header, ...]
    body: bytes | None = None

    def header(self, name: str) -> str | None:
        """The first header of a name in lower case."""
        return next((value for known, value in self.headers if known.lower() == name), None)

    @property
    def repeatable(self) -> bool:
        """May it be sent again when a kept connection turns out to be closed? (RFC 9110, 9.2.2)"""
        return self.method in REPEATABLE_METHODS


def read_headers(given: Json) -> list[Header]:
    """Headers of an object: null is left out, lists are repeated, numbers and booleans are text.

    What frames a message is left out too. Raises ``FailureRaised`` (1001) for what no header can hold.
    """
    if given is None:
        return []
    if not isinstance(given, dict):
        raise cannot_build(f"headers is {type(given).__name__}, not an object of names and values")
    found: list[Header] = []
    for name, value in given.items():
        if _TOKEN.fullmatch(name) is None:
            raise cannot_build(f"{name!r} cannot be the name of a header")
        if name.lower() in _FRAMING:
            continue
        found += [
            (name, _value(name, one)) for one in (value if isinstance(value, list) else [value]) if one is not None
        ]
    return found


def _value(name: str, value: Json) -> str:
    if isinstance(value, dict | list):
        raise cannot_build(f"header {name!r} has an object or a list of lists; write text")
    text = as_text(value).strip()
    if _FORBIDDEN.search(text):
        raise cannot_build(f"header {name!r} has a line break or another control character in its value")
    return text


def on_the_wire(text: str) -> bytes:
    """The bytes of a header's value: Latin-1 as HTTP/1.1 has it, UTF-8 for what that cannot say."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def basic(user: str) -> str:
    """``Authorization`` of the user and password in a URL."""
    return f"Basic {base64.b64encode((user if ':' in user else user + ':').encode()).decode()}"


def key_value(key: str) -> str:
    """An idempotency key as a header holds it: what is not printable ASCII is percent-encoded."""
    return quote(key, safe="!#$&'()*+,/:;=?@[]~|")


def redirected(request: Request, status: int, url: Url) -> Request:
    """The request that follows a redirect.

    303, and 302 as everybody treats it, become GET without a body; so does POST after 301. 307 and 308 repeat the
    request. To another origin only headers go that hold no secret: a key is as often in ``X-Api-Key`` as in
    ``Authorization``.
    """
    method, body, headers = request.method, request.body, request.headers
    becomes_get = status in (302, 303) or (status == 301 and method == "POST")
    if becomes_get and method not in ("GET", "HEAD"):
        method, body = "GET", None
        headers = tuple(h for h in headers if not h[0].lower().startswith(_ABOUT_CONTENT) and not _is_key(h))
    if url.origin != request.url.origin:
        headers = tuple(h for h in headers if _goes_anywhere(h[0].lower()))
    return replace(request, method=method, url=url, headers=headers, body=body)


def _is_key(header: Header) -> bool:
    return header[0].lower() == "idempotency-key"


def _goes_anywhere(name: str) -> bool:
    return name in _GOES_ANYWHERE or name.startswith(("accept", _ABOUT_CONTENT))


def shown_headers(given: Json) -> Json:
    """Headers as people may see them: values that may be secrets are masked."""
    if not isinstance(given, dict):
        return given
    return {name: value if _is_shown(name.lower()) else MASK for name, value in given.items()}


def _is_shown(name: str) -> bool:
    return name in _SHOWN or _goes_anywhere(name)


def header_object(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers of an answer by name as it was sent; repeated ones joined by a comma, cookies by a line break."""
    found: dict[str, str] = {}
    spelled: dict[bytes, str] = {}
    for name, value in raw:
        key = spelled.setdefault(name.lower(), name.decode("latin-1"))
        text = _decoded(value)
        glue = "\n" if name.lower() == b"set-cookie" else ", "
        found[key] = f"{found[key]}{glue}{text}" if key in found else text
    return found


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
