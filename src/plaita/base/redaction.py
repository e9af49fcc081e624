"""Keeping values of exposed variables and credentials out of what people read."""

from __future__ import annotations

from collections.abc import Collection

from plaita.base.json import Json

MASK = "•••"
LENGTH_MIN = 4
"""Shorter values are no secrets: masking every ``1`` helps nobody."""


def redact(value: Json, secrets: Collection[str]) -> Json:
    """The value with every secret in its texts and keys replaced by ``•••``."""
    worth = sorted({s for s in secrets if len(s) >= LENGTH_MIN}, key=len, reverse=True)
    return _redact(value, worth) if worth else value


def _redact(value: Json, secrets: list[str]) -> Json:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, list):
        return [_redact(item, secrets) for item in value]
    if isinstance(value, dict):
        return {_redact(key, secrets): _redact(item, secrets) for key, item in value.items()}
    return value
