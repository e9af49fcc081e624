"""Bodies: values to bytes for a request, bytes to values of an answer, decompressed no further than allowed."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import AsyncIterable
from typing import Final

import orjson

from plaita.base.errors import InputError
from plaita.base.json import Json, parse
from plaita.node.network.failures import answer_refused, cannot_build, send_failed
from plaita.node.network.urls import as_text, urlencoded

CODINGS: Final = "gzip, deflate"
FORM: Final = "application/x-www-form-urlencoded"
_CHARSET: Final = re.compile(r"""\bcharset\s*=\s*["']?([\w.:+-]+)""", re.IGNORECASE)
_GZIP_OR_ZLIB: Final = 47
_RAW: Final = -15
_TEXTUAL: Final = ("xml", "html", "javascript", "x-www-form-urlencoded", "yaml")


def media_type(content_type: str) -> tuple[str, str]:
    """Type in lower case and charset (empty when there is none) of a ``Content-Type``."""
    media, _, parameters = content_type.partition(";")
    charset = _CHARSET.search(parameters)
    return media.strip().lower(), charset[1] if charset else ""


def is_json(media: str) -> bool:
    """Is it JSON, by its name?"""
    return media.endswith("+json") or media in ("application/json", "text/json")


def body_bytes(body: Json, content_type: str) -> bytes | None:
    """The bytes of a body, ``None`` for none. Text is sent as it is unless the content type is JSON.

    An object is a form when the type says so, else JSON. Raises ``FailureRaised`` (1001) for what cannot be sent.
    """
    if body is None:
        return None
    media, charset = media_type(content_type)
    if is_json(media):
        return _json_bytes(body)
    if isinstance(body, str):
        text = body
    elif media == FORM:
        text = urlencoded(body, "body")
    elif media.startswith("multipart/"):
        raise cannot_build(f"a body of type {media} is text that holds its parts; objects become JSON or a form")
    else:
        text = as_text(body)
    try:
        return text.encode(charset or "utf-8")
    except (LookupError, UnicodeError) as e:
        raise cannot_build(f"the body cannot be written in {charset!r}: {e}") from None


def _json_bytes(body: Json) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:  # integers beyond 64 bits
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def body_value(raw: bytes, content_type: str) -> Json:
    """An answer's body as a value.

    JSON is parsed; JSON that no state can hold (NaN, a key twice, nested too deep) stays the text it is. Objects and
    lists are parsed under another textual type too. Bytes that are no text are ``{"base64": …}``.
    """
    media, charset = media_type(content_type)
    textual = not media or media.startswith("text/") or is_json(media) or media.endswith(_TEXTUAL)
    try:
        text = raw.decode("utf-8-sig") if not charset else _decoded(raw, charset)
    except UnicodeDecodeError:
        if not textual:
            return {"base64": base64.b64encode(raw).decode()}
        text = raw.decode(errors="replace")
    if is_json(media) or (textual and text.lstrip()[:1] in ("{", "[")):
        try:
            return parse(text)
        except InputError:
            return text
    return text


def _decoded(raw: bytes, charset: str) -> str:
    """Text in a named charset, UTF-8 when nobody knows it. Some charsets can say lone surrogates: they are replaced."""
    try:
        text = raw.decode(charset)
    except LookupError:
        text = raw.decode()
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Inflating:
    """Undoes one content coding; never gives more than ``limit`` bytes in all."""

    def __init__(self, coding: str, limit: int) -> None:
        self._room = limit
        self._is_deflate = coding == "deflate"
        self._plain = coding in ("", "identity")
        self._inflate = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._begun = False

    def feed(self, chunk: bytes) -> bytes:
        """The next bytes. Raises ``FailureRaised`` (1003) when they are too many or broken."""
        if self._plain:
            return self._counted(chunk)
        out = bytearray()
        while chunk:
            out += self._counted(self._decompress(chunk))
            chunk = self._inflate.unconsumed_tail
            if self._inflate.eof:
                chunk = self._inflate.unused_data
                if chunk:
                    self._inflate = zlib.decompressobj(_GZIP_OR_ZLIB)
        return bytes(out)

    def _decompress(self, chunk: bytes) -> bytes:
        begun, self._begun = self._begun, True
        try:
            return self._inflate.decompress(chunk, self._room + 1)
        except zlib.error as e:
            if begun or not self._is_deflate:
                raise answer_refused(f"the body cannot be decompressed: {e}") from None
        # Half of the world sends the deflate stream without the wrapper that the standard asks for.
        self._inflate = zlib.decompressobj(_RAW)
        return self._decompress(chunk)

    def _counted(self, piece: bytes) -> bytes:
        self._room -= len(piece)
        if self._room < 0:
            raise _TooLarge
        return piece

    def end(self) -> None:
        """Nothing more comes. Raises ``FailureRaised`` (1002) when something is missing."""
        if self._begun and not self._inflate.eof:
            raise send_failed("the compressed body ends too early")


class _TooLarge(Exception):
    """More than the limit."""


async def read_body(stream: AsyncIterable[bytes], coding: str, limit: int) -> bytes:
    """The whole body, decompressed. Raises ``FailureRaised`` when it is larger than ``limit`` or broken."""
    coding = coding.strip().lower()
    if coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise answer_refused(f"the body has the content coding {coding!r}; only gzip and deflate were asked for")
    inflating = Inflating(coding, limit)
    body = bytearray()
    try:
        async for chunk in stream:
            body += inflating.feed(chunk)
    except _TooLarge:
        text = f"the body is larger than {limit} bytes (PLAITA_HTTP_MAX_RESPONSE_BYTES)"
        raise answer_refused(text) from None
    inflating.end()
    return bytes(body)
