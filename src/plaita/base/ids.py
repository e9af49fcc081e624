"""Ids that come from outside or follow from something else. Random ones are drawn by ``base.clock.new_id``."""

from __future__ import annotations

import hashlib
from typing import Final

from plaita.base.errors import InputError

ID_CHARS_MAX: Final = 200


def check_id(text: str, path: str) -> None:
    """An id is said, pasted and part of other ids. Raises ``InputError`` naming ``path``."""
    if len(text) > ID_CHARS_MAX:
        raise InputError(path, f"has {len(text)} characters; at most {ID_CHARS_MAX} are allowed")
    if text.startswith("-") or text != text.strip() or not text.isprintable():
        raise InputError(path, f"{text!r}: no leading -, no outer blanks, no control characters")


def check_text(text: object, path: str) -> None:
    """Whatever a store keeps or is asked for is Unicode. Raises ``InputError`` naming ``path``."""
    if not isinstance(text, str):
        raise InputError(path, f"is text, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(path, f"{text!r}: text with a lone surrogate is not Unicode") from None


def check_texts(**texts: object) -> None:
    """``check_text`` of each, by its name."""
    for path, text in texts.items():
        check_text(text, path)


def derived_id(*parts: str) -> str:
    """The same 32 hexadecimal characters for the same parts."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8))
        digest.update(part.encode())
    return digest.hexdigest()


def start_digest(closure: str, data: bytes) -> str:
    """What makes two starts of one id the same: the definition and the input as JSON bytes."""
    return hashlib.sha256(closure.encode() + data).hexdigest()
