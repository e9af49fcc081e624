"""The documented fingerprint of a flow definition, as rows of other installations carry it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

FLOW_HASH_ALGO: Final = "flow-definition-json-sortkeys-v2"


def canonical_flow_definition_json(flow_definition: Mapping[str, Any]) -> str:
    """A definition as the text that is hashed: keys in order, no blanks, other values than JSON as their text."""
    return json.dumps(
        dict(flow_definition), sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
    )  # fmt: skip


def compute_flow_definition_hash(flow_definition: Mapping[str, Any]) -> str:
    """SHA-256 of the definition as it was written, hexadecimal."""
    return hashlib.sha256(canonical_flow_definition_json(flow_definition).encode()).hexdigest()


def classify_flow_hash_change(
    *,
    stored_hash: str | None,
    current_hash: str,
    stored_algo: str | None,
    current_algo: str,
    allow_change: bool,
) -> str:
    """What two fingerprints say: ``no_guard`` (none was stored), ``match``, ``refresh`` (the same by another rule),
    ``accepted`` (another by another rule, and that was allowed) or ``mismatch``."""
    same_rule = stored_algo is None or stored_algo == current_algo
    if not stored_hash:
        return "no_guard"
    if stored_hash == current_hash:
        return "match" if same_rule else "refresh"
    return "accepted" if allow_change and not same_rule else "mismatch"
