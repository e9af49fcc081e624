"""Secrets in the fields of a node: what may stand in the state in their place.

A secret is written as a reference: ``env:NAME`` or ``file:PATH``. Whoever needs the secret reads it there; the state
holds the reference. A secret that is written as it is stands in the definition, and the state says only that:
``definition:FIELD``. One that an expression gives stands nowhere else, so that it cannot be kept.
"""

from __future__ import annotations

import hashlib
import re

from plaita.base.json import Json
from plaita.engine.linking import NodeLink

_REFERENCE = re.compile(r"(env:[A-Za-z_]\w*|file:.+)", re.ASCII | re.DOTALL)
_HOW = "write it as env:NAME or file:PATH"


def is_reference(text: str) -> bool:
    """Does the text name a secret instead of being one?"""
    return _REFERENCE.fullmatch(text) is not None


def look_at_secret(link: NodeLink, raw: Json, field: str) -> None:
    """A secret that is written as it is, is a warning."""
    if isinstance(raw, str) and not is_reference(raw):
        text = f"a secret is written into the flow; everybody who may read the flow can read {field}"
        link.report("secret_in_flow", field, text, hint=_HOW, severity="warning")


def stored_secret(value: str, field: str, *, literal: bool) -> str:
    """What the state holds of a secret that is needed as it is. Raises ``ValueError`` when only the state has it."""
    if is_reference(value):
        return value
    if literal:
        return f"definition:{field}"
    raise ValueError(f"{field} evaluates to a secret itself, which would stand in the state; {_HOW}")


def stored_proof(value: str) -> str:
    """What the state holds of a secret that is only compared: its reference, or its digest."""
    return value if is_reference(value) else f"sha256:{hashlib.sha256(value.encode()).hexdigest()}"
