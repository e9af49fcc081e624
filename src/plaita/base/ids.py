"""Ids that come from outside or follow from something else. Random ones are drawn by ``base.clock.new_id``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from plaita.base.errors import InputError

ID_CHARS_MAX: Final = 200
NUMBER: Final = re.compile(r"[0-9]{1,18}")
"""A number that every store can count up to."""


def check_id(text: str, path: str) -> None:
    """An id is said, pasted and part of other ids. Raises ``InputError`` naming ``path``."""
    check_text(text, path)
    if len(text) > ID_CHARS_MAX:
        raise InputError(path, f"has {len(text)} characters; at most {ID_CHARS_MAX} are allowed")
    if text.startswith("-") or text != text.strip() or not text.isprintable():
        raise InputError(path, f"{text!r}: no leading -, no outer blanks, no control characters")


def check_queue(name: str, path: str) -> None:
    """The name of a queue is an id that stands in lists of names with commas. Raises ``InputError`` naming ``path``."""
    check_id(name, path)
    if not name or "," in name:
        raise InputError(path, f"{name!r}: the name of a queue is not empty and has no comma")


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


def check_list(texts: object, path: str) -> tuple[str, ...]:
    """Several texts. One text is not taken for as many as it has letters: ``InputError`` naming ``path``."""
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise InputError(path, f"is a list of texts, not {texts!r}")
    found = tuple(texts)
    for text in found:
        check_text(text, path)
    return found


def check_whole(number: object, path: str, least: int, most: int) -> None:
    """A whole number in its bounds. Raises ``InputError`` naming ``path``."""
    if type(number) is not int or not least <= number <= most:
        raise InputError(path, f"{number!r} is no whole number between {least} and {most}")


def check_cursor(text: object, form: re.Pattern[str] = NUMBER) -> None:
    """Nothing, or what a page gave as its ``next``: text of that form. Raises ``InputError`` for anything else."""
    check_text(text, "cursor")
    if text and not form.fullmatch(str(text)):
        raise InputError("cursor", f"{text!r} is not the `next` of a page")


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
